// One sequence, one token at a time, with the next step already in flight.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "core/replay.h"

namespace butter {

enum class StopReason { kNone, kStopToken, kLength, kContext, kCancelled, kError };

/// splits = min(max_splits, ceil(kv_len / split_len))
struct SplitRule {
  uint32_t max_splits = 1;
  uint32_t split_len = 1;
};

/// Throws ConfigError unless both are at least 1.
void check_splits(const SplitRule& rule);

/// Fills in what a decode step of one token at this position has in its header.
void fill_decode_words(std::span<uint32_t> words, const SplitRule& rule, uint32_t position,
                       uint32_t draw);

/// Throws DeviceError if the device could draw no token at this position.
void check_token(int32_t token, uint32_t position);

struct DecodeConfig {
  std::vector<int32_t> stop_tokens;
  uint32_t max_position = 0;  // positions that the caches hold
  SplitRule splits;
  bool ahead = true;  // false for state that cannot drop the extra step
};

struct DecodeStart {
  std::vector<uint32_t> words;  // header of every step; position, rows, draw … are filled in
  uint32_t position = 0;        // of the first step's input token
  uint32_t draw = 0;            // index of the first step's random draw
  uint32_t limit = 0;           // tokens to produce
};

/// The decode program reads its input token on the device, where the step before has left it.
/// One thread calls start() and next(); cancel() may come from any thread.
class DecodeLoop {
 public:
  DecodeLoop(std::shared_ptr<Replay> replay, DecodeConfig config);
  /// Waits for the step in flight.
  ~DecodeLoop();

  /// Submits the first step. Throws ConfigError if the previous run has not ended.
  void start(DecodeStart start);

  /// The next token, or nothing once the run has ended. Throws what the step stored.
  std::optional<int32_t> next();

  /// Up to `count` tokens without leaving native code.
  std::vector<int32_t> run(uint32_t count);

  /// Ends the run at the next call of next().
  void cancel() { cancelled_ = true; }

  StopReason reason() const { return reason_; }
  /// The token that ended the run, for kStopToken.
  std::optional<int32_t> stop_token() const { return stop_token_; }
  /// Positions whose cache entries are valid; the dropped step ahead does not count.
  uint32_t position() const { return start_.position + taken_; }
  /// Steps whose token was read, each of which used one random draw.
  uint32_t taken() const { return taken_; }

 private:
  bool can_submit() const;
  void submit();
  int32_t take();
  void end(StopReason reason);

  std::shared_ptr<Replay> replay_;
  DecodeConfig config_;
  std::unordered_set<int32_t> stop_;
  DecodeStart start_;
  std::array<Replay::Ticket, 2> tickets_{};
  uint32_t submitted_ = 0;
  std::atomic<uint32_t> taken_ = 0;
  std::atomic<bool> running_ = false;
  std::atomic<bool> cancelled_ = false;
  std::atomic<StopReason> reason_ = StopReason::kNone;
  std::optional<int32_t> stop_token_;
  std::mutex mutex_;  // start() and next() exclude each other
};

}  // namespace butter
