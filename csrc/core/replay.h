// A plan made ready to run again and again in one dispatch mode.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/step_ring.h"
#include "hal/device.h"
#include "hal/program.h"

namespace butter {

struct ReplayStats {
  uint64_t submissions = 0;
  uint64_t encode_ns = 0;   // CPU time of the submitting threads, from a free slot on
  uint64_t device_ns = 0;   // of the steps whose result was waited for
  uint64_t barrier_ns = 0;  // of that, what a thread of the device spent waiting for the others
  uint64_t barriers = 0;    // of these steps: phases that threads of the device shared
};

/// Steps run in the order of their submission. Safe to share between threads.
class Replay {
 public:
  using Ticket = uint64_t;

  Replay(std::shared_ptr<Device> device, std::shared_ptr<const Plan> plan, DispatchMode mode);
  /// Waits for the steps in flight.
  ~Replay();

  /// Copies header words and token ids, each those of all step blocks in order, encodes and
  /// submits. Blocks while all three slots are in flight. Throws ShapeError for a step beyond the
  /// recorded limits, and the error of a step that failed without being waited for.
  Ticket submit(std::span<const uint32_t> words, std::span<const int32_t> tokens);

  /// Blocks until that step has ended; throws its error, else returns the out_token of its first
  /// step block.
  int32_t wait(Ticket ticket);
  /// As wait(), with the out_token of every step block.
  void wait_all(Ticket ticket, std::span<int32_t> out_tokens);

  /// Runs one step dispatch by dispatch, alone on the device; its time in ns by dispatch.
  std::vector<uint64_t> profile(std::span<const uint32_t> words, std::span<const int32_t> tokens);

  /// A kept activation after the steps in flight. Throws ConfigError for any other id.
  std::vector<std::byte> read(uint32_t id);

  ReplayStats stats() const;
  DispatchMode mode() const { return mode_; }
  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<Device>& device() const { return device_; }

 private:
  struct Slot {
    std::shared_ptr<Completion> work;
    bool waited = true;
  };

  void check(std::span<const uint32_t> words, std::span<const int32_t> tokens) const;
  void finish(Slot& slot);
  void count(const Completion& work);

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Plan> plan_;
  DispatchMode mode_;
  bool reads_tokens_;
  StepRing ring_;
  PlanMemory memory_;
  std::unique_ptr<Encoder> encoder_;

  mutable std::mutex mutex_;
  std::array<Slot, kRing> slots_;
  Ticket next_ = 0;
  ReplayStats stats_;
};

}  // namespace butter
