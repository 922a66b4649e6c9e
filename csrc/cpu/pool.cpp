#include "cpu/pool.h"

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "core/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace butter::cpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // about 10 ns; "yield" is a no-op on most cores
#endif
}

/// Throws system_error.
void bind([[maybe_unused]] std::thread& thread, int cpu) {
  int code = ENOTSUP;
#if defined(__linux__)
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(size_t(cpu), &mask);
  code = pthread_setaffinity_np(thread.native_handle(), sizeof mask, &mask);
#endif
  if (code != 0) throw std::system_error(code, std::generic_category(), concat("CPU ", cpu));
}

// Phases of one token follow each other within microseconds; tokens within a fraction of a
// millisecond, the time of the host's sampling of text.
struct Patience {
  microseconds spin, yield;
};
constexpr Patience kOwnCores{microseconds(5), microseconds(1000)};
constexpr Patience kSharedCores{microseconds(0), microseconds(20)};

}  // namespace

Pool::Pool(int threads, bool oversubscribed, std::span<const int> cpus)
    : fork_(fork_generation()), oversubscribed_(oversubscribed), ranges_(size_t(threads)) {
  threads_.reserve(size_t(threads));
  try {
    for (size_t i = 0; i < size_t(threads); ++i) {
      threads_.emplace_back([this, i] { work(i); });
      if (!cpus.empty()) bind(threads_.back(), cpus[i]);
    }
  } catch (const std::exception& e) {
    stopping_ = true;
    wake();
    for (std::thread& t : threads_) t.join();
    throw Error(Code::kDevice, "cpu",
                concat("could not start ", threads, " threads: ", e.what(), ". Ask for fewer."));
  }
}

Pool::~Pool() {
  if (fork_ != fork_generation()) {
    // The handles name threads of the parent: joining or detaching them is undefined here.
    new std::vector<std::thread>(std::move(threads_));
    return;
  }
  drain();
  stopping_ = true;
  wake();
  for (std::thread& t : threads_) t.join();
}

void Pool::submit(std::shared_ptr<Submission> work) {
  check_fork(fork_);
  work->begin();
  pending_.fetch_add(1);
  {
    const std::lock_guard lock(mutex_);
    if (!fault_.empty()) {
      work->fail(std::make_exception_ptr(Error(Code::kDevice, "cpu", fault_)));
      fault_.clear();
    }
    if (!std::exchange(idle_, false)) {
      queue_.push_back(std::move(work));
      return;
    }
  }
  // Every worker waits, so opening the first phase is this thread's job.
  current_ = std::move(work);
  open_next(std::nullopt);
}

void Pool::inject_fault(const std::string& message) {
  const std::lock_guard lock(mutex_);
  fault_ = message;
}

void Pool::drain() {
  check_fork(fork_);
  for (uint32_t n = pending_.load(); n != 0; n = pending_.load()) pending_.wait(n);
}

void Pool::work(size_t worker) {
  while (take_ticket(worker)) {
    std::optional<uint32_t> chunk = claim(worker);
    while (chunk) {
      try {
        current_->run(*phase_, *chunk);
      } catch (...) {
        current_->fail(std::current_exception());
      }
      const bool is_last = unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1;
      chunk = is_last ? open_next(worker) : std::nullopt;
    }
  }
}

bool Pool::take_ticket(size_t worker) {
  uint64_t since = 0;
  while (true) {
    uint64_t open = open_.load(std::memory_order_acquire);
    if (uint32_t(open) == 0) {
      if (since == 0) since = now_ns();
      if (!await(worker, open)) return false;
      continue;
    }
    // A chunk that was taken keeps its phase, and so `current_`, in place until it is counted.
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
    if (since != 0) current_->add_wait(since);
    return true;
  }
}

void Pool::fetch_ahead(size_t worker) {
  constexpr uint32_t kLine = 64, kLines = 4;
  Range& range = ranges_[worker];
  const std::byte* begin = range.ahead.load(std::memory_order_relaxed);
  if (begin != range.fetching) {
    range.fetching = begin;
    range.fetched = 0;
  }
  if (range.fetched >= range.ahead_bytes.load(std::memory_order_relaxed)) return;
  for (uint32_t i = 0; i < kLines; ++i, range.fetched += kLine) {
    __builtin_prefetch(begin + range.fetched, 0, 2);
  }
}

uint32_t Pool::claim(size_t worker) {
  // As many tickets as chunks are given out, so one of the ranges still has a chunk for this one.
  for (size_t i = worker;; i = (i + 1) % ranges_.size()) {
    Range& range = ranges_[i];
    if (range.next.load(std::memory_order_relaxed) >= range.end) continue;
    const uint32_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk < range.end) return chunk;
  }
}

std::optional<uint32_t> Pool::open_next(std::optional<size_t> worker) {
  while (true) {
    if (const Phase* phase = current_->next_phase()) {
      phase_ = phase;
      return open(phase->chunks, worker);
    }
    current_->finish();
    if (pending_.fetch_sub(1) == 1) pending_.notify_all();
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
      current_.reset();
      idle_ = true;
      return std::nullopt;
    }
    current_ = std::move(queue_.front());
    queue_.pop_front();
  }
}

std::optional<uint32_t> Pool::open(uint32_t chunks, std::optional<size_t> worker) {
  unfinished_.store(chunks, std::memory_order_relaxed);
  // The worker that opens a phase has its first chunk at once. If that is all, nobody else needs
  // to know: a chain of small kernels stays on one core, beside its data.
  if (worker && chunks == 1) return 0;
  for (size_t i = 0, n = ranges_.size(); i < n; ++i) {
    ranges_[i].next.store(uint32_t(uint64_t(chunks) * i / n), std::memory_order_relaxed);
    ranges_[i].end = uint32_t(uint64_t(chunks) * (i + 1) / n);
    if (phase_->ahead == Phase::kNone) continue;
    const Stretch& stretch = current_->stretches[phase_->ahead + i];
    ranges_[i].ahead.store(stretch.begin, std::memory_order_relaxed);
    ranges_[i].ahead_bytes.store(stretch.bytes, std::memory_order_relaxed);
  }
  std::optional<uint32_t> mine;
  if (worker) mine = claim(*worker);
  const uint64_t number = (open_.load(std::memory_order_relaxed) >> 32) + 1;
  // Without a chunk of its own, this thread must not touch the phase any more: it may have ended.
  open_.store(number << 32 | (mine ? chunks - 1 : chunks));
  if (sleepers_.load() > 0) wake();
  return mine;
}

void Pool::wake() {
  wakeups_.fetch_add(1);
  wakeups_.notify_all();
}

bool Pool::await(size_t worker, uint64_t seen) {
  const auto [spin, yield] = oversubscribed_ ? kSharedCores : kOwnCores;
  const Clock::time_point start = Clock::now();
  while (true) {
    for (int i = 0; i < 16; ++i) {
      if (open_.load(std::memory_order_acquire) != seen) return true;
      fetch_ahead(worker);
      pause();
    }
    const auto waited = Clock::now() - start;
    if (waited >= yield) break;
    if (waited >= spin) std::this_thread::yield();
  }
  // The order matters: announce, read the counter, look again, sleep. Then no wake is missed.
  sleepers_.fetch_add(1);
  const uint32_t wakeups = wakeups_.load();
  const bool idle = open_.load() == seen;
  if (idle && !stopping_) wakeups_.wait(wakeups);
  sleepers_.fetch_sub(1);
  return !(idle && stopping_);
}

}  // namespace butter::cpu
