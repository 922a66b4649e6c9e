// Runs a group: every simdgroup goes on until all its lanes stand at the same call; barriers are
// exact, divergence is fatal.
#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "group.h"

extern "C" void msl_swap(void** save, void* to);
asm(R"(
.text
.globl msl_swap
.hidden msl_swap
.type msl_swap, @function
msl_swap:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  pop %rcx
  jmp *%rcx  # a ret would be mispredicted
)");

namespace msl {

thread_local Group* running __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr size_t kStack = 64 << 10, kGuard = 4096;

char* reserve(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) std::abort();
  return static_cast<char*>(p);
}

// Kept by the OS thread: mapping them anew would cost more than most launches.
struct Stacks {
  char* begin = nullptr;
  size_t bytes = 0;
  ~Stacks() {
    if (begin) munmap(begin, bytes);
  }
  char* get(size_t wanted) {
    if (wanted > bytes) {
      if (begin) munmap(begin, bytes);
      begin = reserve(bytes = wanted);
      // An overflow faults: the lowest page of each stack is not mapped.
      for (size_t at = 0; at + kStack <= bytes; at += kStack)
        mprotect(begin + at, kGuard, PROT_NONE);
    }
    return begin;
  }
};
thread_local Stacks own_stacks;

// From a lane to the next one of its simdgroup, from the last one to the scheduler.
void leave(Group& g) {
  settle_races(g);
  Fiber* me = g.current;
  if (me + 1 < g.end_of_simdgroup) {
    g.current = me + 1;
    msl_swap(&me->stack_pointer, g.current->stack_pointer);
  } else {
    msl_swap(&me->stack_pointer, g.scheduler);
  }
}

void first_frame() {
  Group& g = *running;
  g.launch.kernel->entry(&g.dispatch, &g.current->thread);
  g.current->waits_for = 0;
  ++g.ended;
  leave(g);
  std::abort();
}

}  // namespace

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const Group& g = *running;
  std::fprintf(stderr, "msl: %s: ", g.launch.kernel->name);
  std::vfprintf(stderr, format, arguments);
  const MslThread& t = (g.current ? g.current : g.fibers.data())->thread;
  std::fprintf(stderr, " (threadgroup %u,%u,%u thread %u)\n", t.group.v[0], t.group.v[1],
               t.group.v[2], t.index);
  std::abort();
}

Group::Group(const MslLaunch& l) : launch(l), dispatch(l.dispatch), spans(l.spans) {
  const MslUint3& size = dispatch.group_size;
  const unsigned threads = size.v[0] * size.v[1] * size.v[2];
  fibers.resize(threads);
  active.resize(simdgroups(threads));
  simdgroup_clock.resize(simdgroups(threads));
  stacks_bytes = threads * kStack + kGuard + simdgroups(threads) * 2 * kMslLanes * kSlotBytes;
  stacks = own_stacks.get(stacks_bytes);
  // The first page is the guard of a stack if an earlier group was larger.
  slots = stacks + threads * kStack + kGuard;

  size_t bytes = launch.kernel->shared_bytes;
  std::vector<size_t> offsets;
  for (size_t dynamic : launch.threadgroup_bytes) {
    offsets.push_back(bytes);
    bytes += (dynamic + 15) / 16 * 16;
  }
  cells.resize(bytes);
  shared = static_cast<char*>(std::aligned_alloc(16, kSharedRoom));
  for (size_t i = 0; i < offsets.size(); ++i) dispatch.group_memory[i] = shared + offsets[i];
}

Group::~Group() { std::free(shared); }

void Group::start(unsigned index) {
  Fiber& f = fibers[index];
  // Staggered, or the tops of all stacks share the same cache sets.
  auto top = reinterpret_cast<void**>(stacks + (index + 1) * kStack - (index % 61) * 192) - 2;
  *top = reinterpret_cast<void*>(first_frame);
  f.stack_pointer = top - 6;
  f.waits_for = -1;
  f.phase = 0;
  f.shared_bytes = 0;
}

/// Up to the next threadgroup barrier (true) or to the end.
bool Group::run_simdgroup(unsigned simdgroup) {
  const unsigned begin = simdgroup * kMslLanes, end = std::min(count, begin + kMslLanes);
  for (;;) {
    end_of_simdgroup = fibers.data() + end;
    ended = 0;
    current = fibers.data() + begin;
    msl_swap(&scheduler, current->stack_pointer);
    if (ended == end - begin) return false;
    const Fiber& first = fibers[begin];
    for (unsigned i = begin; i < end; ++i) {
      current = &fibers[i];
      const Fiber& f = *current;
      if (f.waits_for == first.waits_for && (f.waits_for == 0 || f.site == first.site)) continue;
      const bool is_barrier = first.waits_for != kMslSimd && f.waits_for != kMslSimd;
      fail(is_barrier ? "a barrier that not all threads reach together"
                      : "a simdgroup operation that not all lanes reach together");
    }
    if (first.waits_for == kMslThreadgroup) return true;
    if (first.waits_for == kMslSimdBarrier) ++simdgroup_clock[simdgroup];
  }
}

void Group::run() {
  running = this;
  const unsigned n = simdgroups(count);
  // Nothing may rely on what an earlier group left.
  std::memset(shared, 0xAA, cells.size());
  ++epoch;
  for (unsigned i = 0; i < count; ++i) start(i);
  for (unsigned s = 0; s < n; ++s) active[s] = std::min(count - s * kMslLanes, kMslLanes);
  for (bool any = true; any;) {
    any = false;
    bool all = true;
    for (unsigned s = 0; s < n; ++s) {
      const bool waits = run_simdgroup(s);
      any |= waits;
      all &= waits;
    }
    if (any && !all) fail("a barrier that not all simdgroups reach");
    ++epoch;
  }
  running = nullptr;
}

}  // namespace msl

using msl::running;

extern "C" {
void msl_sync(int scope, const void* site) {
  msl::Group& g = *running;
  g.current->waits_for = scope;
  g.current->site = site;
  msl::leave(g);
}
unsigned msl_lane(void) { return running->current->thread.lane; }
unsigned msl_active(void) { return running->active[running->current->thread.simdgroup]; }
unsigned msl_next_phase(void) { return running->current->phase++ & 1; }
char* msl_slots(int phase) {
  const size_t row = running->current->thread.simdgroup * 2 + phase;
  return running->slots + row * kMslLanes * msl::kSlotBytes;
}
char* msl_shared(size_t bytes) {
  msl::Group& g = *running;
  // Every thread comes by the same declarations in the same order.
  const size_t offset = g.current->shared_bytes;
  g.current->shared_bytes += bytes;
  if (g.current->shared_bytes > g.launch.kernel->shared_bytes) {
    msl::fail("threadgroup memory declared inside a loop");
  }
  return g.shared + offset;
}
}
