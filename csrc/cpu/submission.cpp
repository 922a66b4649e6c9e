#include "cpu/submission.h"

#include <pthread.h>

#include <chrono>
#include <span>

#include "core/error.h"

namespace butter::cpu {
namespace {

std::atomic<uint32_t> forks = 0;

}  // namespace

uint64_t now_ns() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return uint64_t(std::chrono::nanoseconds(t).count());
}

uint32_t fork_generation() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

void check_fork(uint32_t generation) {
  if (generation == fork_generation()) return;
  throw Error(Code::kDevice, "cpu",
              "this device was opened before fork() and has no worker threads here. Open a new "
              "device in the child, or start it with the 'spawn' method.");
}

void Submission::begin() {
  next_ = 0;
  shared_phases_ = 0;
  failed_.store(false, std::memory_order_relaxed);
  error_ = nullptr;
  started_ns_ = ended_ns_ = 0;
  waited_ns_.store(0, std::memory_order_relaxed);
  fork_ = fork_generation();
  state_.store(kPending, std::memory_order_release);
}

void Submission::fail(std::exception_ptr error) {
  // Written before finish() publishes it; a second failure is dropped.
  if (!failed_.exchange(true)) error_ = std::move(error);
}

void Submission::add_wait(uint64_t since_ns) {
  // What came before the submission began was not its doing.
  const uint64_t begin = std::max(since_ns, started_ns_);
  waited_ns_.fetch_add(now_ns() - begin, std::memory_order_relaxed);
}

void Submission::run(const Phase& phase, uint32_t chunk) {
  if (phase.chunks == 1) {
    for (const Task& task : std::span(tasks).subspan(phase.begin, phase.end - phase.begin)) {
      if (task.groups > 0) task.fn(task.args, 0, task.groups);
    }
    return;
  }
  uint32_t t = phase.begin;
  while (chunk >= tasks[t].chunks) chunk -= tasks[t++].chunks;
  const Task& task = tasks[t];
  const uint64_t groups = task.groups;
  task.fn(task.args, uint32_t(groups * chunk / task.chunks),
          uint32_t(groups * (chunk + 1) / task.chunks));
}

const Phase* Submission::next_phase() {
  if (next_ == 0) started_ns_ = now_ns();
  while (next_ < phases.size() && !failed_.load(std::memory_order_relaxed)) {
    const Phase* phase = &phases[next_++];
    shared_phases_ += phase->chunks > 1;
    if (phase->chunks > 0) return phase;
  }
  return nullptr;
}

void Submission::finish() {
  ended_ns_ = now_ns();
  state_.store(kDone, std::memory_order_release);
  state_.notify_all();
}

void Submission::wait() {
  while (true) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state != kPending) break;
    check_fork(fork_);
    state_.wait(state, std::memory_order_acquire);
  }
  if (error_) std::rethrow_exception(error_);
}

}  // namespace butter::cpu
