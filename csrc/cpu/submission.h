// A stream of kernel calls in phases, as the worker pool runs it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "cpu/kernel_abi.h"
#include "hal/commands.h"

namespace butter::cpu {

struct Task {
  CpuKernel fn;
  KernelArgs args;
  uint32_t groups;
  uint32_t chunks;  // pieces that workers may take separately
};

/// Memory that a worker is about to stream.
struct Stretch {
  const std::byte* begin = nullptr;
  uint32_t bytes = 0;
};

struct Phase {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t begin, end;     // tasks
  uint32_t chunks;         // 1 of several tasks: all of them, one after the other
  uint32_t ahead = kNone;  // index of the first of `workers` stretches of a later phase
};

/// Filled by the host, then run by the pool; may be filled again once done.
class Submission : public Completion {
 public:
  std::vector<Task> tasks;
  std::vector<Phase> phases;
  std::vector<Stretch> stretches;
  uint32_t workers = 1;

  bool done() const override { return state_.load(std::memory_order_acquire) == kDone; }
  void wait() override;
  uint64_t device_ns() const override { return ended_ns_ - started_ns_; }
  uint64_t barrier_ns() const override { return waited_ns_.load() / std::max(1u, workers); }
  uint64_t barriers() const override { return workers > 1 ? shared_phases_ : 0; }

  // For the pool.
  void begin();
  /// Keeps the first exception; the phases that follow are skipped.
  void fail(std::exception_ptr error);
  /// A worker has waited since this time for a chunk of this submission.
  void add_wait(uint64_t since_ns);
  void run(const Phase& phase, uint32_t chunk);
  /// Null after the last phase that has work, or after a failure.
  const Phase* next_phase();
  void finish();

 private:
  static constexpr uint32_t kIdle = 0, kPending = 1, kDone = 2;

  std::atomic<uint32_t> state_ = kIdle;
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;
  size_t next_ = 0;
  uint64_t shared_phases_ = 0;
  uint32_t fork_ = 0;
  uint64_t started_ns_ = 0, ended_ns_ = 0;
  std::atomic<uint64_t> waited_ns_ = 0;
};

uint64_t now_ns();

/// Counts how often this process is a fork's child: worker threads do not survive a fork.
uint32_t fork_generation();

/// Throws DeviceError in the child of a fork that happened after `generation` was read.
void check_fork(uint32_t generation);

}  // namespace butter::cpu
