#include "metal/bound_plan.h"

#include <algorithm>
#include <set>

#include "core/cost.h"
#include "core/eager_encoder.h"
#include "core/error.h"
#include "core/kernel_check.h"
#include "core/step_ring.h"
#include "metal/commands.h"
#include "step_fields.h"

namespace butter::metal {
namespace {

constexpr uint32_t kWarp = 32;
constexpr size_t kAlign = 8;  // words: constant buffers of a Mac start at multiples of 32 bytes
constexpr size_t kGroupWords = 2;  // in table form the groups along x and y follow the dims

}  // namespace

BoundPlan::BoundPlan(id<MTLDevice> device, const Plan& plan, const PlanMemory& memory, Form form)
    : plan_(plan), memory_(memory), form_(form) {
  uint32_t phase = 0;
  calls_.reserve(plan.dispatches.size());  // dynamic_ points into it
  for (const Dispatch& d : plan.dispatches) {
    if (is_empty(d.grid)) continue;
    calls_.push_back({&d, d.grid, dims_stride_, d.phase != phase});
    phase = d.phase;
    dims_stride_ += (words(d) + kAlign - 1) / kAlign * kAlign;
    if (!d.dynamic.empty()) dynamic_.push_back(&calls_.back());
  }
  const NSUInteger bytes = std::max<size_t>(dims_stride_ * kRing, kAlign) * sizeof(uint32_t);
  dims_ = Ref<id<MTLBuffer>>([device newBufferWithLength:bytes
                                                 options:MTLResourceStorageModeShared]);
  if (!dims_.get()) throw Error(Code::kMemory, "metal", "no memory for the dims of a program.");
  for (uint32_t slot = 0; slot < kRing; ++slot) {
    for (const Call& call : calls_) {
      std::ranges::copy(call.dispatch->dims(), dims(call, slot).begin());
      write_groups(call, slot);
    }
  }
  residency_ = residency(device);
}

size_t BoundPlan::words(const Dispatch& dispatch) const {
  return dispatch.dims().size() + (form_ == Form::kTable ? kGroupWords : 0);
}

std::span<uint32_t> BoundPlan::dims(const Call& call, uint32_t slot) const {
  auto* all = static_cast<uint32_t*>(dims_.get().contents);
  return {all + slot * dims_stride_ + call.first_dim, call.dispatch->dims().size()};
}

void BoundPlan::write_groups(const Call& call, uint32_t slot) {
  if (form_ == Form::kTable) std::copy_n(call.grid.begin(), kGroupWords, dims(call, slot).end());
}

std::vector<Place> BoundPlan::arguments(const Call& call, uint32_t slot) const {
  const Dispatch& d = *call.dispatch;
  const Slice& step = memory_.step(slot, d.block);
  std::vector<Place> places;
  for (const Binding& b : d.bindings) places.push_back(place(resolve(plan_, memory_, step, b)));
  if (d.kernel->uses_step) places.push_back(place(step));
  if (words(d) > 0) {
    places.push_back({dims_, (slot * dims_stride_ + call.first_dim) * sizeof(uint32_t)});
  }
  return places;
}

void BoundPlan::read_step(uint32_t slot) {
  for (Call* call : dynamic_) {
    const Slice& step = memory_.step(slot, call->dispatch->block);
    const auto* words = reinterpret_cast<const uint32_t*>(step.buffer->host() + step.offset);
    const std::span<uint32_t> now = dims(*call, slot);
    step_dims(*call->dispatch, {words, step::kHeaderWords}, now);
    call->grid = evaluate_grid(*call->dispatch->kernel, now, kWarp);
    write_groups(*call, slot);
  }
}

Residency BoundPlan::residency(id<MTLDevice> device) const {
  std::set<id<MTLBuffer>> read, written;
  for (const Call& call : calls_) {
    const KernelInfo& info = *call.dispatch->kernel;
    const std::vector<Place> places = arguments(call, 0);
    for (size_t i = 0; i < places.size(); ++i) {
      const bool is_step = i == info.params.size() && info.uses_step;
      const bool writes = i < info.params.size() ? info.params[i].kind != ParamKind::kIn
                                                 : is_step && info.writes_step;
      (writes ? written : read).insert(places[i].buffer);
    }
  }
  for (id<MTLBuffer> buffer : written) read.erase(buffer);
  return Residency(device, read, written);
}

}  // namespace butter::metal
