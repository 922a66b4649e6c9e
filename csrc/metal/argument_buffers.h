// Argument tables encoded at load: a step binds them once and then only moves an offset.
#pragma once

#import <Metal/Metal.h>

#include <memory>
#include <vector>

#include "hal/program.h"
#include "metal/bound_plan.h"
#include "metal/queue.h"
#include "metal/ref.h"

namespace butter::metal {

class ArgumentBufferEncoder : public Encoder {
 public:
  /// The arguments outlive the encoder.
  ArgumentBufferEncoder(id<MTLDevice> device, PsoCache& pipelines, Queue& queue, const Plan& plan,
                        const PlanMemory& memory);

  std::shared_ptr<Completion> submit(uint32_t slot) override;

 private:
  void write_tables(uint32_t slot);
  void encode(id<MTLComputeCommandEncoder> encoder, uint32_t slot) const;

  Queue& queue_;
  BoundPlan plan_;
  // The tables of all layers, once per slot of the step ring.
  Ref<id<MTLBuffer>> tables_;
  std::vector<NSUInteger> offsets_;  // of each call within a slot
  NSUInteger stride_ = 0;
};

}  // namespace butter::metal
