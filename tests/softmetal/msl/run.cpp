// Runs all groups of a launch, on a few OS threads.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "group.h"

namespace {

constexpr uint64_t kWorthAThread = 4096;  // GPU threads

unsigned workers(uint64_t groups, uint64_t threads) {
  static const char* const chosen = std::getenv("MSL_THREADS");
  const unsigned most = chosen ? std::atoi(chosen) : std::thread::hardware_concurrency();
  return std::max<uint64_t>(1, std::min({uint64_t(most), groups, threads / kWorthAThread}));
}

/// Numbers the threads of one group; those outside of the grid do not take part.
void place(msl::Group& g, const MslUint3& group) {
  const MslUint3 &size = g.dispatch.group_size, &grid = g.dispatch.grid;
  unsigned n = 0;
  for (uint32_t z = 0; z < size.v[2]; ++z) {
    for (uint32_t y = 0; y < size.v[1]; ++y) {
      for (uint32_t x = 0; x < size.v[0]; ++x) {
        const MslUint3 at = {
            {group.v[0] * size.v[0] + x, group.v[1] * size.v[1] + y, group.v[2] * size.v[2] + z}};
        if (at.v[0] >= grid.v[0] || at.v[1] >= grid.v[1] || at.v[2] >= grid.v[2]) continue;
        g.fibers[n].thread = {at, {{x, y, z}}, group, n, n % kMslLanes, n / kMslLanes};
        ++n;
      }
    }
  }
  g.count = n;
}

void merge(std::vector<MslSpan>& all, const std::vector<MslSpan>& part) {
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].read_begin = std::min(all[i].read_begin, part[i].read_begin);
    all[i].read_end = std::max(all[i].read_end, part[i].read_end);
    all[i].write_begin = std::min(all[i].write_begin, part[i].write_begin);
    all[i].write_end = std::max(all[i].write_end, part[i].write_end);
  }
}

}  // namespace

void msl_run(MslLaunch& launch) {
  const MslUint3 &n = launch.dispatch.groups, &size = launch.dispatch.group_size;
  const uint64_t total = uint64_t(n.v[0]) * n.v[1] * n.v[2];
  const uint64_t threads = total * size.v[0] * size.v[1] * size.v[2];
  if (threads == 0) return;

  std::atomic<uint64_t> next{0};
  const auto work = [&](std::vector<MslSpan>& touched) {
    msl::Group group(launch);
    for (uint64_t i; (i = next++) < total;) {
      place(group,
            {{uint32_t(i % n.v[0]), uint32_t(i / n.v[0] % n.v[1]), uint32_t(i / n.v[0] / n.v[1])}});
      group.run();
    }
    touched = std::move(group.spans);
  };
  const unsigned count = workers(total, threads);
  std::vector<std::vector<MslSpan>> touched(count);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < count; ++i) others.emplace_back(work, std::ref(touched[i]));
  work(touched[0]);
  for (std::thread& t : others) t.join();
  for (const auto& part : touched) merge(launch.spans, part);
}
