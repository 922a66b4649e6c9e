// One threadgroup at work: a fiber for each of its threads.
#pragma once

#include <memory>

#include "runner.h"

namespace msl {

struct Fiber {
  void* stack_pointer;
  MslThread thread;
  int waits_for;     // MslScope, 0: ended
  const void* site;  // where it waits
  unsigned phase;    // which of two sets of slots it uses next
  size_t shared_bytes;
};

/// Who touched one byte of threadgroup memory last. An epoch ends at a threadgroup barrier.
struct Cell {
  uint32_t write_epoch, write_clock, read_epoch, read_clock;
  uint16_t writer, reader;
};

/// An unordered write that is a race if it changes this byte.
struct Suspect {
  size_t offset;
  char before;
  uint16_t other;
};

/// What one OS thread needs to run groups of one launch.
struct Group {
  explicit Group(const MslLaunch& launch);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Runs the threads that were placed in `fibers`.
  void run();

  const MslLaunch& launch;
  MslDispatch dispatch;
  std::vector<MslSpan> spans;
  std::vector<Fiber> fibers;  // count of them take part
  unsigned count = 0;

  Fiber *current = nullptr, *end_of_simdgroup = nullptr;
  void* scheduler = nullptr;
  unsigned ended = 0;
  std::vector<unsigned> active;           // lanes, by simdgroup
  std::vector<uint32_t> simdgroup_clock;  // simdgroup barriers so far
  uint32_t epoch = 0;                     // threadgroup barriers so far
  std::vector<Cell> cells;
  std::vector<Suspect> suspects;

  char *stacks, *slots;  // one range
  char* shared;
  size_t stacks_bytes;
  MslSpan* last_span = nullptr;

 private:
  void start(unsigned index);
  bool run_simdgroup(unsigned simdgroup);
};

/// The group whose fiber runs on this OS thread.
extern thread_local Group* running __attribute__((tls_model("initial-exec")));

/// Prints "msl: kernel: ... (threadgroup 0,0,0 thread 7)" and aborts.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Fatal if another thread touched these bytes of threadgroup memory since the last barrier.
void check_race(Group& group, size_t offset, size_t bytes, bool writes);

/// Judges the running thread's last write; called before another thread takes over.
void settle_races(Group& group);

constexpr size_t kSlotBytes = 32;
/// Reserved for threadgroup memory, so that accesses past its end are seen.
constexpr size_t kSharedRoom = 4 * kMslThreadgroupBytes;
inline unsigned simdgroups(unsigned threads) { return (threads + kMslLanes - 1) / kMslLanes; }

}  // namespace msl
