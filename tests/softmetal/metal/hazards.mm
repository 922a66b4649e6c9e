// Two dispatches without a barrier in between may run at the same time: neither may write what the
// other touches. Compared are the bytes that they really touched.
#include <algorithm>

#import "command.h"

namespace sm {

bool overlap(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

void Hazards::add(const Dispatch& dispatch, std::vector<Access> accesses) {
  if (dispatch.waits_for_all) barrier();
  const char* kernel = dispatch.pipeline->_function->_kernel->name;
  for (Seen& before : seen_) {
    before.settled.insert(dispatch.waits_for.begin(), dispatch.waits_for.end());
    for (const Access& a : before.accesses) {
      for (const Access& b : accesses) {
        if (!overlap(a, b) || before.settled.count(a.serial)) continue;
        fail("no barrier between %s, which %s %s, and %s, which %s %s: %zu bytes are the same",
             before.kernel.c_str(), a.writes ? "writes" : "reads", a.name.c_str(), kernel,
             b.writes ? "writes" : "reads", b.name.c_str(),
             size_t(std::min(a.end, b.end) - std::max(a.begin, b.begin)));
      }
    }
  }
  seen_.push_back({kernel, std::move(accesses), {}});
}

}  // namespace sm
