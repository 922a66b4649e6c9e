// A stream of kernel calls in phases, as the worker pool runs it.
#pragma once

#include <atomic>
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

struct Phase {
  uint32_t begin, end;  // tasks
  uint32_t chunks;
};

/// Filled by the host, then run by the pool; may be filled again once done.
class Submission : public Completion {
 public:
  std::vector<Task> tasks;
  std::vector<Phase> phases;

  bool done() const override { return state_.load(std::memory_order_acquire) == kDone; }
  void wait() override;
  uint64_t device_ns() const override { return ended_ns_ - started_ns_; }

  // For the pool.
  void begin();
  /// Keeps the first exception; the phases that follow are skipped.
  void fail(std::exception_ptr error);
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
  uint32_t fork_ = 0;
  uint64_t started_ns_ = 0, ended_ns_ = 0;
};

/// Counts how often this process is a fork's child: worker threads do not survive a fork.
uint32_t fork_generation();

/// Throws DeviceError in the child of a fork that happened after `generation` was read.
void check_fork(uint32_t generation);

}  // namespace butter::cpu
