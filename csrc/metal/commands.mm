#include "metal/commands.h"

#include <utility>

#include "metal/memory.h"
#include "metal/pool.h"
#include "metal/pso_cache.h"

namespace butter::metal {

MetalCommands::~MetalCommands() { [encoder_ endEncoding]; }

void MetalCommands::open() {
  const Pool pool;
  commands_ = Ref<id<MTLCommandBuffer>>::keep(queue_.command_buffer());
  // Concurrent: the caller knows the hazards, and says so by barriers.
  encoder_ = Ref<id<MTLComputeCommandEncoder>>::keep(
      [commands_ computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent]);
  needs_barrier_ = false;
}

void MetalCommands::dispatch(const Pipeline& pipeline, const Launch& launch) {
  const auto& compiled = static_cast<const MetalPipeline&>(pipeline);
  if (is_empty(launch.grid)) return;
  if (!encoder_.get()) open();
  if (needs_barrier_) [encoder_ memoryBarrierWithScope:MTLBarrierScopeBuffers];
  needs_barrier_ = false;

  [encoder_ setComputePipelineState:compiled.state];
  NSUInteger index = 0;
  const auto bind = [&](const Slice& slice) {
    const Place at = place(slice);
    [encoder_ setBuffer:at.buffer offset:at.offset atIndex:index++];
  };
  for (const Slice& slice : launch.slices) bind(slice);
  if (compiled.info.uses_step) bind(launch.step);
  const auto dims = launch.scalars.subspan(compiled.info.consts.size());
  if (!dims.empty()) [encoder_ setBytes:dims.data() length:dims.size_bytes() atIndex:index];
  [encoder_ dispatchThreadgroups:size(launch.grid) threadsPerThreadgroup:compiled.threads()];
}

void MetalCommands::barrier() { needs_barrier_ = encoder_.get() != nil; }

std::shared_ptr<Completion> MetalCommands::submit() {
  const Pool pool;
  if (!encoder_.get()) open();
  [encoder_ endEncoding];
  encoder_ = {};
  return queue_.commit(std::exchange(commands_, {}));
}

}  // namespace butter::metal
