#include "metal/icb.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "core/error.h"
#include "metal/commands.h"
#include "metal/pool.h"

namespace butter::metal {
namespace {

constexpr size_t kMaxCommands = 16384;

/// M1 and M2 do not make the pipelines of an indirect command buffer resident: without help the
/// GPU faults or hangs. BUTTER_ICB_FIX=0 turns the help off, 1 turns it on.
bool must_touch_pipelines(id<MTLDevice> device) {
  if (const char* chosen = std::getenv("BUTTER_ICB_FIX")) return std::string_view(chosen) != "0";
  return ![device supportsFamily:MTLGPUFamilyApple9];
}

const MetalPipeline& pipeline(PsoCache& pipelines, const BoundPlan::Call& call) {
  return pipelines.get(*call.dispatch->kernel, call.dispatch->consts());
}

NSUInteger most_arguments(const BoundPlan& plan) {
  size_t most = 1;
  for (const BoundPlan::Call& call : plan.calls()) {
    most = std::max(most, plan.arguments(call, 0).size());
  }
  return most;
}

}  // namespace

IcbEncoder::IcbEncoder(id<MTLDevice> device, PsoCache& pipelines, Queue& queue, const Plan& plan,
                       const PlanMemory& memory)
    : queue_(queue), plan_(device, plan, memory, Form::kPlain) {
  const size_t count = plan_.calls().size();
  if (count > kMaxCommands) {
    throw Error(Code::kUnsupported, "metal",
                concat("too many dispatches for an indirect command buffer: got ", count,
                       ", need at most ", kMaxCommands, ". Use argument_buffers."));
  }
  for (uint32_t slot = 0; slot < kRing && count > 0; ++slot) {
    record(device, pipelines, slot);
  }
  if (!must_touch_pipelines(device)) return;
  std::set<id<MTLComputePipelineState>> distinct;
  for (const BoundPlan::Call& call : plan_.calls()) {
    distinct.insert(pipeline(pipelines, call).state);
  }
  untouched_.assign(distinct.begin(), distinct.end());
}

void IcbEncoder::record(id<MTLDevice> device, PsoCache& pipelines, uint32_t slot) {
  const Pool pool;
  const auto calls = plan_.calls();
  Ref<MTLIndirectCommandBufferDescriptor*> d([[MTLIndirectCommandBufferDescriptor alloc] init]);
  d.get().commandTypes = MTLIndirectCommandTypeConcurrentDispatch;
  d.get().inheritPipelineState = NO;
  d.get().inheritBuffers = NO;
  d.get().maxKernelBufferBindCount = most_arguments(plan_);
  commands_[slot] = Ref<id<MTLIndirectCommandBuffer>>([device
      newIndirectCommandBufferWithDescriptor:d
                             maxCommandCount:calls.size()
                                     options:MTLResourceStorageModeShared]);
  if (!commands_[slot].get()) {
    throw Error(Code::kMemory, "metal",
                concat("no memory for an indirect command buffer of ", calls.size(), " commands."));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const BoundPlan::Call& call = calls[i];
    id<MTLIndirectComputeCommand> command = [commands_[slot] indirectComputeCommandAtIndex:i];
    if (call.starts_phase) [command setBarrier];
    const MetalPipeline& compiled = pipeline(pipelines, call);
    [command setComputePipelineState:compiled.state];
    NSUInteger index = 0;
    for (const Place& place : plan_.arguments(call, slot)) {
      [command setKernelBuffer:place.buffer offset:place.offset atIndex:index++];
    }
    [command concurrentDispatchThreadgroups:size(call.dispatch->grid)
                      threadsPerThreadgroup:compiled.threads()];
  }
}

std::shared_ptr<Completion> IcbEncoder::submit(uint32_t slot) {
  const Pool pool;
  plan_.read_step(slot);
  id<MTLCommandBuffer> commands = queue_.command_buffer();
  id<MTLComputeCommandEncoder> encoder =
      [commands computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
  plan_.residency().use(commands, encoder);
  touch_pipelines(encoder);
  if (commands_[slot].get()) {
    [encoder executeCommandsInBuffer:commands_[slot]
                           withRange:NSMakeRange(0, plan_.calls().size())];
  }
  [encoder endEncoding];
  return queue_.commit(commands);
}

void IcbEncoder::touch_pipelines(id<MTLComputeCommandEncoder> encoder) const {
  // Setting a pipeline and launching nothing makes it resident for the whole encoder.
  for (id<MTLComputePipelineState> pipeline : untouched_) {
    [encoder setComputePipelineState:pipeline];
    [encoder dispatchThreadgroups:MTLSizeMake(0, 0, 0) threadsPerThreadgroup:MTLSizeMake(0, 0, 0)];
  }
}

}  // namespace butter::metal
