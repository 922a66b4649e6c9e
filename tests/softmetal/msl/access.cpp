// Every load and store of a kernel ends up here (see library.cpp): it must lie in the memory of the
// launch, and what it touches is remembered for hazards.
#include <algorithm>

#include "group.h"

#if __has_feature(thread_sanitizer)
extern "C" void __tsan_read_range(void* at, unsigned long bytes);
extern "C" void __tsan_write_range(void* at, unsigned long bytes);
#endif

namespace msl {
namespace {

/// Kernels are not instrumented; so a race with the host is found here.
void tell_tsan([[maybe_unused]] uintptr_t at, [[maybe_unused]] size_t bytes,
               [[maybe_unused]] bool writes) {
#if __has_feature(thread_sanitizer)
  (writes ? __tsan_write_range : __tsan_read_range)(reinterpret_cast<void*>(at), bytes);
#endif
}

[[noreturn]] void outside(const Group& g, uintptr_t at, size_t bytes, bool writes) {
  const char* what = writes ? "writes" : "reads";
  const MslSpan* nearest = nullptr;
  for (const MslSpan& s : g.spans) {
    if (s.begin <= at) nearest = &s;
  }
  if (!nearest) fail("%s %zu bytes at no buffer of the launch", what, bytes);
  fail("%s %zu bytes at byte %zu of %s, which ends at byte %zu", what, bytes,
       size_t(at - nearest->begin), nearest->name, size_t(nearest->end - nearest->begin));
}

MslSpan* find(Group& g, uintptr_t at) {
  auto it = std::upper_bound(g.spans.begin(), g.spans.end(), at,
                             [](uintptr_t a, const MslSpan& s) { return a < s.begin; });
  return it == g.spans.begin() ? nullptr : &*--it;
}

void access(uintptr_t at, size_t bytes, bool writes) {
  Group* group = running;
  if (!group) return;  // the library's own start
  Group& g = *group;
  if (at - reinterpret_cast<uintptr_t>(g.stacks) < g.stacks_bytes) return;
  const size_t offset = at - reinterpret_cast<uintptr_t>(g.shared);
  if (offset < kSharedRoom) return check_race(g, offset, bytes, writes);

  MslSpan* s = g.last_span;
  if (!s || at < s->begin || at + bytes > s->end) {
    s = find(g, at);
    if (!s || at + bytes > s->end) {
      const auto fiber = reinterpret_cast<uintptr_t>(g.fibers.data());
      const auto group = reinterpret_cast<uintptr_t>(&g);
      const bool is_own = at - fiber < g.fibers.size() * sizeof(Fiber) ||
                          at - group < sizeof(Group) ||
                          at - g.launch.image_begin < g.launch.image_end - g.launch.image_begin;
      if (is_own) return;
      outside(g, at, bytes, writes);
    }
    g.last_span = s;
  }
  tell_tsan(at, bytes, writes);
  if (writes) {
    if (!s->may_write) fail("writes to %s, which was made resident for reading only", s->name);
    s->write_begin = std::min(s->write_begin, at);
    s->write_end = std::max(s->write_end, at + bytes);
  } else {
    s->read_begin = std::min(s->read_begin, at);
    s->read_end = std::max(s->read_end, at + bytes);
  }
}

}  // namespace
}  // namespace msl

extern "C" void msl_access(void* at, size_t bytes, bool writes) {
  msl::access(reinterpret_cast<uintptr_t>(at), bytes, writes);
}
