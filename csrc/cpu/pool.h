// Persistent worker threads that run submissions phase by phase.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cpu/submission.h"

namespace butter::cpu {

/// Work is taken in chunks, and whoever ends the last chunk of a phase opens the next one: no
/// worker waits for one that the system has descheduled without a chunk. The submitting thread
/// takes no part, so that it can prepare the next step.
class Pool {
 public:
  /// Worker i is bound to cpus[i], unless that is empty. Throws DeviceError.
  Pool(int threads, bool oversubscribed, std::span<const int> cpus = {});
  /// Runs what was submitted, then joins. After a fork the child only forgets the threads.
  ~Pool();

  /// Submissions run in order. Throws DeviceError in a forked child.
  void submit(std::shared_ptr<Submission> work);

  /// Blocks until nothing is queued or running.
  void drain();

  /// The next submission fails with this message.
  void inject_fault(const std::string& message);

 private:
  void work(size_t worker);
  /// The chunk of the open phase that a worker holding a ticket runs: from its own range first.
  uint32_t claim(size_t worker);
  /// False once the pool is closing.
  bool await(size_t worker, uint64_t seen);
  bool take_ticket(size_t worker);
  /// A few more lines of what this worker will stream next, until `kMost` of lookahead.cpp.
  void fetch_ahead(size_t worker);
  /// Opens the phase after the one that has ended, of this or of the next submission. A worker
  /// gets its first chunk of it.
  std::optional<uint32_t> open_next(std::optional<size_t> worker);
  std::optional<uint32_t> open(uint32_t chunks, std::optional<size_t> worker);
  void wake();

  const uint32_t fork_;
  const bool oversubscribed_;

  // High half: number of the phase. Low half: chunks nobody has taken yet.
  alignas(64) std::atomic<uint64_t> open_ = 0;
  alignas(64) std::atomic<uint32_t> unfinished_ = 0;
  // Written while no chunk is open, read by those who hold one.
  alignas(64) std::shared_ptr<Submission> current_;
  const Phase* phase_ = nullptr;

  // Each worker starts in its own stretch of the chunks, so that what it prefetches past the end of
  // one chunk is its next one, and helps the others when that is done.
  struct alignas(64) Range {
    std::atomic<uint32_t> next = 0;
    uint32_t end = 0;
    // Where the worker's share of a later phase begins. Only ever prefetched: a stale address
    // does no harm.
    std::atomic<const std::byte*> ahead = nullptr;
    std::atomic<uint32_t> ahead_bytes = 0;
    // The worker's own.
    const std::byte* fetching = nullptr;
    uint32_t fetched = 0;
  };
  std::vector<Range> ranges_;

  alignas(64) std::atomic<uint32_t> sleepers_ = 0;
  std::atomic<uint32_t> wakeups_ = 0;
  std::atomic<bool> stopping_ = false;

  std::mutex mutex_;
  std::deque<std::shared_ptr<Submission>> queue_;
  bool idle_ = true;
  std::string fault_;
  std::atomic<uint32_t> pending_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace butter::cpu
