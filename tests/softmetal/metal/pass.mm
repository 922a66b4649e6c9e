// Runs recorded passes in order; finds hazards inside of a pass and between passes.
#include <algorithm>
#include <random>
#include <utility>

#import "encoders.h"
#include "registry.h"

namespace sm {
namespace {

/// Dispatches of a pass in order, those of indirect command buffers in their place.
struct Ready {
  Dispatch dispatch;
  Residency residency;
};

void expand(const Item& item, const Residency& residency, std::vector<Ready>& out) {
  if (!item.indirect) {
    out.push_back({item.dispatch, residency});
    return;
  }
  CHECK(Registry::is_alive(item.indirect_serial), "an indirect command buffer was released early");
  const SMIndirectBuffer* icb = item.indirect;
  bool is_first = true;
  for (NSUInteger i = item.range.location; i < NSMaxRange(item.range); ++i) {
    if (!icb->_is_set[i]) continue;
    Dispatch d = icb->_commands[i];
    if (icb->_descriptor.inheritPipelineState) {
      d.pipeline = item.dispatch.pipeline;
      d.pipeline_serial = item.dispatch.pipeline_serial;
    }
    if (icb->_descriptor.inheritBuffers) d.bindings = item.dispatch.bindings;
    if (is_first) {
      d.waits_for_all |= item.dispatch.waits_for_all;
      d.waits_for = item.dispatch.waits_for;
    }
    is_first = false;
    out.push_back({std::move(d), residency});
  }
}

/// In any order between full barriers, as a GPU may run them.
void shuffle(std::vector<Ready>& ready) {
  static std::mt19937 random(7);
  for (size_t begin = 0; begin < ready.size();) {
    size_t end = begin + 1;
    bool is_plain = ready[begin].dispatch.waits_for.empty();
    while (end < ready.size() && !ready[end].dispatch.waits_for_all) {
      is_plain &= ready[end++].dispatch.waits_for.empty();
    }
    if (is_plain) {
      const bool barrier = std::exchange(ready[begin].dispatch.waits_for_all, false);
      std::shuffle(ready.begin() + begin, ready.begin() + end, random);
      ready[begin].dispatch.waits_for_all = barrier;
    }
    begin = end;
  }
}

void unite(std::vector<Access>& all, const std::vector<Access>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

bool PassRunner::run(const Pass& pass, const Residency& sets, bool stop_half_way) {
  std::vector<Ready> ready;
  Residency residency = sets;
  size_t uses = 0;
  for (const Item& item : pass.items) {
    for (; uses < item.resources; ++uses) {
      residency[pass.uses[uses].serial] |= pass.uses[uses].usage | kSeen;
    }
    expand(item, residency, ready);
  }
  static const bool shuffled = setting("SOFTMETAL_SHUFFLE", 0);
  if (shuffled) shuffle(ready);

  Hazards hazards;
  std::vector<Access> all;
  const size_t end = stop_half_way ? ready.size() / 2 : ready.size();
  for (size_t i = 0; i < end; ++i) {
    std::vector<Access> accesses = execute(ready[i].dispatch, ready[i].residency);
    unite(all, accesses);
    hazards.add(ready[i].dispatch, std::move(accesses));
  }
  if (stop_half_way) return false;
  for (const auto& copy : pass.copies) copy();
  check_against_history(pass, all);
  return true;
}

void PassRunner::check_against_history(const Pass& pass, const std::vector<Access>& accesses) {
  for (Done& before : history_) {
    const bool ordered = std::any_of(pass.waits_for.begin(), pass.waits_for.end(),
                                     [&](uint64_t fence) { return before.fences.count(fence); });
    if (ordered) {
      before.fences.insert(pass.updates.begin(), pass.updates.end());
      continue;
    }
    for (const Access& a : before.accesses) {
      for (const Access& b : accesses) {
        CHECK(!overlap(a, b) || (a.is_tracked && b.is_tracked),
              "nothing orders two encoders that use the same bytes, and Metal does not track them: "
              "one %s %s, a later one %s %s; use a fence, an event or useResource",
              a.writes ? "writes" : "reads", a.name.c_str(), b.writes ? "writes" : "reads",
              b.name.c_str());
      }
    }
  }
  history_.push_back({number_, accesses, {pass.updates.begin(), pass.updates.end()}});
}

void PassRunner::forget_before(uint64_t number) {
  std::erase_if(history_, [&](const Done& d) { return d.number <= number; });
}

}  // namespace sm
