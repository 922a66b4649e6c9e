// A plan whose arguments are places in Metal buffers, for the two modes that resolve them at load.
#pragma once

#import <Metal/Metal.h>

#include <cstdint>
#include <span>
#include <vector>

#include "hal/program.h"
#include "metal/memory.h"
#include "metal/pso_cache.h"
#include "metal/ref.h"

namespace butter::metal {

/// Everything is resolved once for each slot of the step ring, so that a step changes no pointer:
/// the host only writes dims that follow a word of the step block.
class BoundPlan {
 public:
  /// The plan and its memory outlive this.
  BoundPlan(id<MTLDevice> device, PsoCache& pipelines, const Plan& plan, const PlanMemory& memory,
            Form form);

  struct Call {
    const Dispatch* dispatch;
    const MetalPipeline* pipeline;
    size_t first_dim;         // in a slot's dims
    bool starts_phase;        // needs a barrier before it
  };
  std::span<const Call> calls() const { return calls_; }

  /// By argument index of the kernel: tensors, the step block, dims.
  std::vector<Place> arguments(const Call& call, uint32_t slot) const;

  /// Brings the slot's dims up to its step.
  void write_dims(uint32_t slot);
  /// The grid of the slot's step; call write_dims first.
  Grid step_grid(const Call& call, uint32_t slot) const;

  /// Makes all memory resident for what the encoder does next, and orders it after earlier work
  /// on the same memory.
  void use_resources(id<MTLComputeCommandEncoder> encoder) const;

 private:
  std::span<uint32_t> dims(const Call& call, uint32_t slot) const;
  void collect_resources();

  const Plan& plan_;
  const PlanMemory& memory_;
  std::vector<Call> calls_;
  std::vector<const Call*> dynamic_;  // have a dim that changes per step
  Ref<id<MTLBuffer>> dims_;           // of all calls, once per slot
  size_t dims_stride_ = 0;            // words
  std::vector<id<MTLResource>> read_, written_;
};

}  // namespace butter::metal
