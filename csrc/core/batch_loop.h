// Several sequences, one token each per step, with the next step already in flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/decode_loop.h"
#include "core/replay.h"

namespace butter {

struct BatchConfig {
  uint32_t max_position = 0;  // positions that each cache holds
  SplitRule splits;
};

/// What one step brought, in the order of the rows.
struct BatchStep {
  struct Token {
    uint32_t row;
    int32_t token;
  };
  std::vector<Token> tokens;
  std::vector<uint32_t> ended;  // rows that will bring no more; a stop token is no token
};

/// Row r of the program has step block r, reads its input token on the device and leaves the next
/// one there. A row without a sequence is idle: it writes no cache and draws nothing.
/// One thread calls it; cancel() may come from any thread.
class BatchLoop {
 public:
  BatchLoop(std::shared_ptr<Replay> replay, BatchConfig config);
  /// Waits for the steps in flight.
  ~BatchLoop();

  /// The row takes part in steps submitted from here on. What the row reads must be in place.
  /// Throws ConfigError if it still runs or a step in flight still uses it.
  void start(uint32_t row, DecodeStart start, std::vector<int32_t> stop_tokens);

  /// Submits ahead, then waits for the oldest step in flight. Throws what the step stored; then
  /// every row has ended.
  BatchStep next();

  /// Waits for the oldest step in flight without submitting another, so that rows become free.
  BatchStep take();

  /// The row's tokens of steps in flight are dropped, and later steps leave it out.
  void end(uint32_t row);

  /// Every row ends at the next call of next() or take().
  void cancel() { cancelled_ = true; }

  uint32_t rows() const { return uint32_t(rows_.size()); }
  uint32_t running() const;
  uint32_t in_flight() const { return uint32_t(steps_.size()); }
  StopReason reason(uint32_t row) const { return checked(row).reason; }

 private:
  struct Row {
    DecodeStart start;
    std::unordered_set<int32_t> stop;
    uint32_t submitted = 0, taken = 0;
    bool running = false;
    StopReason reason = StopReason::kNone;
  };
  struct Step {
    Replay::Ticket ticket;
    std::vector<bool> uses;  // by row
  };

  const Row& checked(uint32_t row) const;
  bool can_submit(const Row& row) const;
  void write_words(Row& row, std::span<uint32_t> words);
  bool submit();
  void keep(BatchStep& result, uint32_t row, int32_t token);
  void finish(Row& row, StopReason reason);
  void end_all(StopReason reason);
  BatchStep take_oldest();

  std::shared_ptr<Replay> replay_;
  BatchConfig config_;
  std::vector<Row> rows_;
  std::deque<Step> steps_;
  std::vector<uint32_t> words_;  // of all step blocks
  std::vector<int32_t> out_;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
};

}  // namespace butter
