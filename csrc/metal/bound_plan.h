// A plan whose arguments are places in Metal buffers, for the two modes that resolve them at load.
#pragma once

#import <Metal/Metal.h>

#include <cstdint>
#include <span>
#include <vector>

#include "hal/program.h"
#include "metal/library.h"
#include "metal/memory.h"
#include "metal/ref.h"
#include "metal/residency.h"

namespace butter::metal {

/// Everything is resolved once for each slot of the step ring, so that a step changes no pointer:
/// the host only writes dims that follow a word of the step block.
class BoundPlan {
 public:
  /// The plan and its memory outlive this.
  BoundPlan(id<MTLDevice> device, const Plan& plan, const PlanMemory& memory, Form form);

  struct Call {
    const Dispatch* dispatch;
    Grid grid;          // of the latest step
    size_t first_dim;   // in a slot's dims
    bool starts_phase;  // needs a barrier before it
  };
  /// Those that have any group at their largest dims.
  std::span<const Call> calls() const { return calls_; }
  uint32_t phases() const { return plan_.phases; }

  /// By argument index of the kernel: tensors, the step block, dims.
  std::vector<Place> arguments(const Call& call, uint32_t slot) const;

  /// Takes over the dims and grids of the slot's step.
  void read_step(uint32_t slot);

  const Residency& residency() const { return residency_; }

 private:
  size_t words(const Dispatch& dispatch) const;
  void write_groups(const Call& call, uint32_t slot);
  std::span<uint32_t> dims(const Call& call, uint32_t slot) const;
  Residency residency(id<MTLDevice> device) const;

  const Plan& plan_;
  const PlanMemory& memory_;
  const Form form_;
  std::vector<Call> calls_;
  std::vector<Call*> dynamic_;  // have a dim that changes per step
  Ref<id<MTLBuffer>> dims_;     // of all calls, once per slot
  size_t dims_stride_ = 0;      // words
  Residency residency_;
};

}  // namespace butter::metal
