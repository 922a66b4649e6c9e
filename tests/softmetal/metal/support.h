// Failing loudly, counting calls, planting faults.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "softmetal.h"

namespace sm {

/// Prints "softmetal: ..." and aborts.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition, ...)                \
  do {                                       \
    if (!(condition)) sm::fail(__VA_ARGS__); \
  } while (0)

/// Calls of one method.
class Counter {
 public:
  Counter(const char* kind, const char* selector);
  void add() { count_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  void reset() { count_ = 0; }
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
  std::atomic<uint64_t> count_{0};
};

/// First line of every method that is counted.
#define CALL(kind)                                      \
  static sm::Counter counter_(kind, sel_getName(_cmd)); \
  counter_.add()

enum class Fault {
  kSkipUseResource,
  kSkipAllocation,
  kSkipBarrier,
  kShiftBinding,
  kShiftOffset,
  kFailCommandBuffer,
  kFailAllocation,
  kFailPipeline,
  kLeak,
  kOverRelease,
  kCount
};

/// True at the call that was chosen to go wrong.
bool strikes(Fault fault);

/// Command buffers in a queue or still held by its thread.
extern std::atomic<int> in_flight;

/// An environment variable as a number.
long setting(const char* name, long otherwise);

}  // namespace sm
