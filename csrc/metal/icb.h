// A program recorded at load into indirect command buffers: a step executes one of them.
#pragma once

#import <Metal/Metal.h>

#include <array>
#include <memory>
#include <vector>

#include "core/step_ring.h"
#include "hal/program.h"
#include "metal/bound_plan.h"
#include "metal/pso_cache.h"
#include "metal/queue.h"
#include "metal/ref.h"

namespace butter::metal {

/// One indirect command buffer per slot of the step ring, each with the step block of its slot, so
/// that nothing is patched per step. Grids are those of the largest dims; kernels guard themselves.
class IcbEncoder : public Encoder {
 public:
  /// The arguments outlive the encoder. Throws UnsupportedError for too many dispatches.
  IcbEncoder(id<MTLDevice> device, PsoCache& pipelines, Queue& queue, const Plan& plan,
             const PlanMemory& memory);

  std::shared_ptr<Completion> submit(uint32_t slot) override;

 private:
  void record(id<MTLDevice> device, PsoCache& pipelines, uint32_t slot);
  void touch_pipelines(id<MTLComputeCommandEncoder> encoder) const;

  Queue& queue_;
  BoundPlan plan_;
  std::array<Ref<id<MTLIndirectCommandBuffer>>, kRing> commands_;
  std::vector<id<MTLComputePipelineState>> untouched_;  // see touch_pipelines
};

}  // namespace butter::metal
