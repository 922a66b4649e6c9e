// Races in threadgroup memory: two threads touch a byte, one writes it, no barrier in between.
// Lanes of one simdgroup are also ordered by simdgroup_barrier, but not by simd_sum and its like.
// Threads may write what is there already, as when all of them store the same sum.
#include "group.h"

namespace msl {
namespace {

// Readers of a byte since the last barrier: a thread, all of one simdgroup, or several of these.
constexpr uint16_t kSimdgroup = 0x8000, kMany = 0xffff;

[[noreturn]] void race(const char* what, size_t offset, unsigned other) {
  if (other & kSimdgroup) fail("%s byte %zu of threadgroup memory without a barrier", what, offset);
  fail("%s byte %zu of threadgroup memory that thread %u touched, without a barrier", what, offset,
       other);
}

/// The access is seen before it is done: whether a write changes the byte shows afterwards.
void suspect(Group& g, size_t offset, unsigned other) {
  g.suspects.push_back({offset, g.shared[offset], uint16_t(other)});
}

}  // namespace

void settle_races(Group& g) {
  for (const Suspect& s : g.suspects) {
    if (g.shared[s.offset] != s.before) race("writes", s.offset, s.other);
  }
  g.suspects.clear();
}

void check_race(Group& g, size_t offset, size_t bytes, bool writes) {
  settle_races(g);
  const uint16_t me = g.current->thread.index, simdgroup = g.current->thread.simdgroup;
  const uint32_t clock = g.simdgroup_clock[simdgroup];
  if (offset + bytes > g.cells.size()) {
    fail("touches byte %zu of threadgroup memory, which has %zu", offset, g.cells.size());
  }
  for (size_t i = offset; i < offset + bytes; ++i) {
    Cell& c = g.cells[i];
    const bool written = c.write_epoch == g.epoch, read = c.read_epoch == g.epoch;
    if (written && c.writer != me) {
      const bool ordered = c.writer / kMslLanes == simdgroup && c.write_clock < clock;
      if (!ordered && !writes) race("reads", i, c.writer);
      if (!ordered) suspect(g, i, c.writer);
    }
    if (writes) {
      if (read && c.reader != me) {
        const unsigned group =
            c.reader & kSimdgroup ? c.reader & ~kSimdgroup : c.reader / kMslLanes;
        const bool ordered = c.reader != kMany && group == simdgroup && c.read_clock < clock;
        if (!ordered) suspect(g, i, c.reader);
      }
      c.write_epoch = g.epoch;
      c.write_clock = clock;
      c.writer = me;
    } else {
      const uint16_t ours = kSimdgroup | simdgroup;
      if (!read) {
        c.reader = me;
      } else if (c.reader != me && c.reader != ours) {
        const bool same = !(c.reader & kSimdgroup) && c.reader / kMslLanes == simdgroup;
        c.reader = same ? ours : kMany;
      }
      c.read_epoch = g.epoch;
      c.read_clock = clock;
    }
  }
}

}  // namespace msl
