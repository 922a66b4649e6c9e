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

NSUInteger round_up(NSUInteger n, NSUInteger unit) { return (n + unit - 1) / unit * unit; }

/// Kernels with one group along z take the index of their table from there (iron/emit/msl.py).
bool is_flat(const KernelInfo& info) {
  const Expr& z = info.grid[2];
  return z.size() == 1 && z[0].op == Op::kInt && z[0].value == 1;
}

bool may_share(const BoundPlan::Call& a, const BoundPlan::Call& b) {
  return !b.starts_phase && a.dispatch->kernel == b.dispatch->kernel &&
         a.dispatch->layer == b.dispatch->layer && is_flat(*a.dispatch->kernel) &&
         std::ranges::equal(a.dispatch->consts(), b.dispatch->consts());
}

/// The smallest grid that holds the grids of all calls, with a layer along z for each.
Grid common_grid(std::span<const BoundPlan::Call> calls) {
  Grid grid = calls[0].grid;
  if (calls.size() == 1) return grid;
  for (const BoundPlan::Call& call : calls) {
    if (is_empty(call.grid)) continue;
    grid[0] = std::max(grid[0], call.grid[0]);
    grid[1] = std::max(grid[1], call.grid[1]);
  }
  grid[2] = uint32_t(calls.size());
  return grid;
}

}  // namespace

ArgumentBufferEncoder::ArgumentBufferEncoder(id<MTLDevice> device, PsoCache& pipelines,
                                             Queue& queue, const Plan& plan,
                                             const PlanMemory& memory)
    : queue_(queue), plan_(device, plan, memory, Form::kTable) {
  plan_batches(pipelines);
  // A serial encoder orders its launches without a call for each barrier. It costs what could have
  // run at the same time, which is next to nothing where nearly every dispatch is a phase.
  is_concurrent_ = batches_.size() * 4 > plan_.phases() * size_t{5};
  const NSUInteger bytes = std::max<NSUInteger>(stride_ * kRing, kAlign);
  tables_ = Ref<id<MTLBuffer>>([device newBufferWithLength:bytes
                                                   options:MTLResourceStorageModeShared]);
  if (!tables_.get()) throw Error(Code::kMemory, "metal", "no memory for argument tables.");
  for (uint32_t slot = 0; slot < kRing; ++slot) write_tables(slot);
}

void ArgumentBufferEncoder::plan_batches(PsoCache& pipelines) {
  const std::span<const BoundPlan::Call> calls = plan_.calls();
  NSUInteger layer = 0;
  for (size_t begin = 0, end = 0; begin < calls.size(); begin = end) {
    const Dispatch& d = *calls[begin].dispatch;
    for (end = begin + 1; end < calls.size() && may_share(calls[begin], calls[end]);) ++end;
    // Layers of equal shape lay out their tables equally, and so share pipelines.
    if (begin > 0 && d.layer != calls[begin - 1].dispatch->layer) {
      layer = stride_ = round_up(stride_, kAlign);
    }
    const NSUInteger bytes = plan_.arguments(calls[begin], 0).size() * sizeof(uint64_t);
    const NSUInteger first = round_up(stride_ - layer, bytes);
    const MetalPipeline& pipeline =
        pipelines.get(*d.kernel, d.consts(), Form::kTable, uint32_t(first / bytes));
    batches_.push_back({calls.subspan(begin, end - begin), &pipeline, layer, first, bytes});
    stride_ = layer + first + (end - begin) * bytes;
  }
  stride_ = round_up(stride_, kAlign);
}

void ArgumentBufferEncoder::write_tables(uint32_t slot) {
  auto* base = static_cast<std::byte*>(tables_.get().contents) + slot * stride_;
  for (const Batch& batch : batches_) {
    std::byte* at = base + batch.layer + batch.first;
    for (const BoundPlan::Call& call : batch.calls) {
      for (const Place& place : plan_.arguments(call, slot)) {
        // From Metal 3 on, a pointer in an argument buffer is the plain GPU address.
        const uint64_t address = place.buffer.gpuAddress + place.offset;
        std::memcpy(at, &address, sizeof address);
        at += sizeof address;
      }
    }
  }
}

std::shared_ptr<Completion> ArgumentBufferEncoder::submit(uint32_t slot) {
  const Pool pool;
  plan_.read_step(slot);
  id<MTLCommandBuffer> commands = queue_.command_buffer();
  id<MTLComputeCommandEncoder> encoder =
      [commands computeCommandEncoderWithDispatchType:is_concurrent_ ? MTLDispatchTypeConcurrent
                                                                     : MTLDispatchTypeSerial];
  plan_.residency().use(commands, encoder);
  encode(encoder, slot);
  [encoder endEncoding];
  return queue_.commit(commands);
}

void ArgumentBufferEncoder::encode(id<MTLComputeCommandEncoder> encoder, uint32_t slot) const {
  NSUInteger layer = 0;
  [encoder setBuffer:tables_ offset:slot * stride_ atIndex:0];
  const MetalPipeline* current = nullptr;
  for (const Batch& batch : batches_) {
    if (is_concurrent_ && batch.calls[0].starts_phase) {
      [encoder memoryBarrierWithScope:MTLBarrierScopeBuffers];
    }
    const Grid grid = common_grid(batch.calls);
    if (is_empty(grid)) continue;
    if (batch.layer != layer) {
      layer = batch.layer;
      [encoder setBufferOffset:slot * stride_ + layer atIndex:0];
    }
    if (batch.pipeline != current) [encoder setComputePipelineState:batch.pipeline->state];
    current = batch.pipeline;
    [encoder dispatchThreadgroups:size(grid) threadsPerThreadgroup:current->threads()];
  }
}

}  // namespace butter::metal
