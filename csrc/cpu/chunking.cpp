#include "cpu/chunking.h"

#include <algorithm>

#include "core/cost.h"

namespace butter::cpu {
namespace {

// One core streams about 10 bytes or does about 10 simple operations in a nanosecond.
constexpr uint64_t kPerNs = 10;
// Taking a chunk costs about 0.1 us, and its first lines come from memory unprefetched: below this,
// splitting loses.
constexpr uint64_t kChunkNs = 3000;
// More chunks than threads even out cores that the system slows down.
constexpr uint32_t kChunksPerThread = 8;

}  // namespace

uint32_t chunk_count(const KernelInfo& info, std::span<const uint32_t> dims, uint32_t groups,
                     uint32_t warp, uint32_t threads) {
  if (groups <= 1 || threads == 1) return std::min(groups, 1u);
  const Cost cost = kernel_cost(info, dims, warp);
  const uint64_t ns = std::max(cost.bytes, cost.flops) / kPerNs;
  const uint64_t worth = std::clamp<uint64_t>(ns / kChunkNs, 1, threads * kChunksPerThread);
  return uint32_t(std::min<uint64_t>(worth, groups));
}

void count_chunks(Submission& work, Phase& phase) {
  phase.chunks = 0;
  for (uint32_t t = phase.begin; t < phase.end; ++t) phase.chunks += work.tasks[t].chunks;
}

}  // namespace butter::cpu
