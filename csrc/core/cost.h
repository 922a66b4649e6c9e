// What one step of a plan moves and computes, from the manifest's formulas.
#pragma once

#include <cstdint>
#include <span>

#include "hal/program.h"

namespace butter {

struct Cost {
  uint64_t bytes = 0;
  uint64_t flops = 0;
};

/// A dispatch's dims with this step's values in place of dynamic ones; `words` are those of its
/// step block.
void step_dims(const Dispatch& dispatch, std::span<const uint32_t> words, std::span<uint32_t> dims);

/// Throws ShapeError if a formula overflows.
Cost kernel_cost(const KernelInfo& info, std::span<const uint32_t> dims, uint32_t warp);

/// `words` are those of all step blocks; with none, dynamic dims count at their maximum.
Cost plan_cost(const Plan& plan, std::span<const uint32_t> words, uint32_t warp);

}  // namespace butter
