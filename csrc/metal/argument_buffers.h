// Argument tables encoded at load: a step binds one place per layer, and launches.
#pragma once

#import <Metal/Metal.h>

#include <memory>
#include <span>
#include <vector>

#include "hal/program.h"
#include "metal/bound_plan.h"
#include "metal/pso_cache.h"
#include "metal/queue.h"
#include "metal/ref.h"

namespace butter::metal {

/// A pipeline knows which table of its layer it reads, so launches need no bind of their own.
/// Launches of one phase that differ in nothing but their arguments become one dispatch.
class ArgumentBufferEncoder : public Encoder {
 public:
  /// The arguments outlive the encoder.
  ArgumentBufferEncoder(id<MTLDevice> device, PsoCache& pipelines, Queue& queue, const Plan& plan,
                        const PlanMemory& memory);

  std::shared_ptr<Completion> submit(uint32_t slot) override;

 private:
  /// One dispatch of neighboring calls.
  struct Batch {
    std::span<const BoundPlan::Call> calls;
    const MetalPipeline* pipeline;
    NSUInteger layer;  // where its layer's tables begin
    NSUInteger first;  // its own first table, from there
    NSUInteger table_bytes;
  };

  void plan_batches(PsoCache& pipelines);
  void write_tables(uint32_t slot);
  void encode(id<MTLComputeCommandEncoder> encoder, uint32_t slot) const;

  Queue& queue_;
  BoundPlan plan_;
  std::vector<Batch> batches_;
  NSUInteger stride_ = 0;      // bytes of the tables of one slot
  Ref<id<MTLBuffer>> tables_;  // once per slot of the step ring
  bool is_concurrent_ = false;
};

}  // namespace butter::metal
