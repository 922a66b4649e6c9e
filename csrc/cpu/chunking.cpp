#include "cpu/chunking.h"

#include <algorithm>

#include "core/cost.h"

namespace butter::cpu {
namespace {

// One core streams about 10 bytes or does about 10 simple operations in a nanosecond.
constexpr uint64_t kPerNs = 10;
// Handing a chunk to another core costs about 0.2 us, and its first lines come from memory
// unprefetched: with less work than this per thread, fewer threads take part.
constexpr uint64_t kThreadNs = 3000;
// More chunks than threads even out cores that the system slows down, once they are this long.
constexpr uint64_t kChunkNs = 10000;
constexpr uint64_t kChunksPerThread = 8;
// So many kernels of which none pays for a second thread, such as those that rotate q and k, are
// not worth a hand-over either.
constexpr uint32_t kPair = 2;

}  // namespace

uint32_t chunk_count(const KernelInfo& info, std::span<const uint32_t> dims, uint32_t groups,
                     uint32_t warp, uint32_t threads) {
  if (groups <= 1 || threads == 1) return std::min(groups, 1u);
  const Cost cost = kernel_cost(info, dims, warp);
  const uint64_t ns = std::max(cost.bytes, cost.flops) / kPerNs;
  const uint64_t busy = std::clamp<uint64_t>(ns / kThreadNs, 1, threads);
  const uint64_t rounds = std::clamp<uint64_t>(ns / kChunkNs / threads, 1, kChunksPerThread);
  return uint32_t(std::min<uint64_t>(busy * rounds, groups));
}

void count_chunks(Submission& work, Phase& phase) {
  phase.chunks = 0;
  for (uint32_t t = phase.begin; t < phase.end; ++t) phase.chunks += work.tasks[t].chunks;
  const uint32_t tasks = phase.end - phase.begin;
  if (tasks <= kPair && phase.chunks == tasks) phase.chunks = std::min(phase.chunks, 1u);
}

}  // namespace butter::cpu
