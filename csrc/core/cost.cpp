#include "core/cost.h"

#include <algorithm>
#include <vector>

#include "core/expr.h"
#include "step_fields.h"

namespace butter {

void step_dims(const Dispatch& dispatch, std::span<const uint32_t> words,
               std::span<uint32_t> dims) {
  std::ranges::copy(dispatch.dims(), dims.begin());
  if (words.empty()) return;
  for (const DynamicDim& d : dispatch.dynamic) dims[d.dim] = words[d.word];
}

Cost kernel_cost(const KernelInfo& info, std::span<const uint32_t> dims, uint32_t warp) {
  return {uint64_t(std::max<int64_t>(0, evaluate(info.bytes, dims, warp))),
          uint64_t(std::max<int64_t>(0, evaluate(info.flops, dims, warp)))};
}

Cost plan_cost(const Plan& plan, std::span<const uint32_t> words, uint32_t warp) {
  Cost total;
  std::vector<uint32_t> dims;
  for (const Dispatch& d : plan.dispatches) {
    dims.resize(d.dims().size());
    const size_t at = d.block * step::kHeaderWords;
    step_dims(d, words.empty() ? words : words.subspan(at, step::kHeaderWords), dims);
    const Cost one = kernel_cost(*d.kernel, dims, warp);
    total.bytes += one.bytes;
    total.flops += one.flops;
  }
  return total;
}

}  // namespace butter
