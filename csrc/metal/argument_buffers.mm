#include "metal/argument_buffers.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/step_ring.h"
#include "metal/commands.h"
#include "metal/pool.h"

namespace butter::metal {
namespace {

constexpr NSUInteger kAlign = 64;

}  // namespace

ArgumentBufferEncoder::ArgumentBufferEncoder(id<MTLDevice> device, PsoCache& pipelines,
                                             Queue& queue, const Plan& plan,
                                             const PlanMemory& memory)
    : queue_(queue), plan_(device, pipelines, plan, memory, Form::kTable) {
  for (const BoundPlan::Call& call : plan_.calls()) {
    const NSUInteger bytes = plan_.arguments(call, 0).size() * sizeof(uint64_t);
    offsets_.push_back(stride_);
    stride_ += (bytes + kAlign - 1) / kAlign * kAlign;
  }
  tables_ =
      Ref<id<MTLBuffer>>([device newBufferWithLength:std::max<NSUInteger>(stride_ * kRing, kAlign)
                                             options:MTLResourceStorageModeShared]);
  if (!tables_.get()) throw Error(Code::kMemory, "metal", "no memory for argument tables.");
  for (uint32_t slot = 0; slot < kRing; ++slot) write_tables(slot);
}

void ArgumentBufferEncoder::write_tables(uint32_t slot) {
  auto* base = static_cast<std::byte*>(tables_.get().contents) + slot * stride_;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    std::byte* at = base + offsets_[i];
    for (const Place& place : plan_.arguments(plan_.calls()[i], slot)) {
      // From Metal 3 on, a pointer in an argument buffer is the plain GPU address.
      const uint64_t address = place.buffer.gpuAddress + place.offset;
      std::memcpy(at, &address, sizeof address);
      at += sizeof address;
    }
  }
}

std::shared_ptr<Completion> ArgumentBufferEncoder::submit(uint32_t slot) {
  const Pool pool;
  plan_.read_step(slot);
  id<MTLCommandBuffer> commands = queue_.command_buffer();
  id<MTLComputeCommandEncoder> encoder =
      [commands computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
  plan_.residency().use(commands, encoder);
  encode(encoder, slot);
  [encoder endEncoding];
  return queue_.commit(commands);
}

void ArgumentBufferEncoder::encode(id<MTLComputeCommandEncoder> encoder, uint32_t slot) const {
  [encoder setBuffer:tables_ offset:slot * stride_ atIndex:0];
  const MetalPipeline* current = nullptr;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const BoundPlan::Call& call = plan_.calls()[i];
    if (call.starts_phase) [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
    if (is_empty(call.grid)) continue;
    if (call.pipeline != current) [encoder setComputePipelineState:call.pipeline->state];
    current = call.pipeline;
    [encoder setBufferOffset:slot * stride_ + offsets_[i] atIndex:0];
    [encoder dispatchThreadgroups:size(call.grid) threadsPerThreadgroup:current->threads()];
  }
}

}  // namespace butter::metal
