// Sizes the pieces of work that the pool hands out.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/submission.h"
#include "hal/manifest.h"

namespace butter::cpu {

/// Pieces that pay for the hand-over between cores, by the kernel's own cost formulas.
uint32_t chunk_count(const KernelInfo& info, std::span<const uint32_t> dims, uint32_t groups,
                     uint32_t warp, uint32_t threads);

/// Sums the chunks of a phase; call it after its tasks have changed.
void count_chunks(Submission& work, Phase& phase);

}  // namespace butter::cpu
