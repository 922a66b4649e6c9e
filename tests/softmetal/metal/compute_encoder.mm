#import "buffers.h"
#import "encoders.h"

#define OPEN       \
  CALL("compute"); \
  CHECK(!_has_ended, "%s after endEncoding", sel_getName(_cmd))

@implementation SMComputeEncoder {
  sm::Dispatch _next;
  MTLDispatchType _type;
  std::set<uint64_t> _touched;  // pipelines that a dispatch has used
}

- (instancetype)initWithCommands:(SMCommandBuffer*)commands type:(MTLDispatchType)type {
  self = [super initWithCommands:commands];
  _type = type;
  return self;
}
- (MTLDispatchType)dispatchType {
  return _type;
}

- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  OPEN;
  CHECK(state, "setComputePipelineState: nil");
  SMPipeline* pipeline = (SMPipeline*)state;
  [_commands keep:pipeline];
  _next.pipeline = pipeline;
  _next.pipeline_serial = pipeline->_serial;
}

- (void)bind:(id<MTLBuffer>)buffer offset:(NSUInteger)offset at:(NSUInteger)index {
  if (sm::strikes(sm::Fault::kShiftBinding)) ++index;
  if (sm::strikes(sm::Fault::kShiftOffset)) offset += 16;
  CHECK(index < kMslBuffers, "a buffer at index %lu", (unsigned long)index);
  if (!buffer) {
    _next.bindings.erase(index);
    return;
  }
  SMBuffer* b = (SMBuffer*)buffer;
  CHECK(offset < b->_length, "setBuffer: offset %lu in a buffer of %zu bytes",
        (unsigned long)offset, b->_length);
  [_commands keep:b];
  _next.bindings[index] = {b, b->_serial, offset, {}};
  sm_miscount(b);
  _pass.uses.push_back({b->_serial, MTLResourceUsageRead | MTLResourceUsageWrite});
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  OPEN;
  [self bind:buffer offset:offset at:index];
}
- (void)setBuffers:(const id<MTLBuffer> __unsafe_unretained[])buffers
           offsets:(const NSUInteger[])offsets
         withRange:(NSRange)range {
  OPEN;
  for (NSUInteger i = 0; i < range.length; ++i) {
    [self bind:buffers[i] offset:offsets[i] at:range.location + i];
  }
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  OPEN;
  if (sm::strikes(sm::Fault::kShiftOffset)) offset += 16;
  const auto it = _next.bindings.find(index);
  CHECK(it != _next.bindings.end() && it->second.buffer, "setBufferOffset: no buffer at %lu",
        (unsigned long)index);
  CHECK(offset < it->second.buffer->_length, "setBufferOffset: %lu in a buffer of %zu bytes",
        (unsigned long)offset, it->second.buffer->_length);
  it->second.offset = offset;
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  OPEN;
  CHECK(length > 0 && length <= 4096, "setBytes: %lu bytes, the limit is 4096",
        (unsigned long)length);
  CHECK(index < kMslBuffers, "setBytes: at index %lu", (unsigned long)index);
  _next.bindings[index] = {nil, 0, 0, std::string(static_cast<const char*>(bytes), length)};
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  OPEN;
  _next.threadgroup_bytes[index] = length;
}

- (void)push:(sm::Item)item {
  item.dispatch.waits_for_all |= _type == MTLDispatchTypeSerial;
  item.resources = _pass.uses.size();
  if (item.dispatch.pipeline) _touched.insert(item.dispatch.pipeline_serial);
  _pass.items.push_back(std::move(item));
  _next.waits_for_all = false;
  _next.waits_for.clear();
}
- (void)dispatch:(MTLSize)grid group:(MTLSize)group countsThreads:(bool)countsThreads {
  CHECK(_next.pipeline, "a dispatch without a pipeline");
  sm::Item item{_next};
  item.dispatch.grid = grid;
  item.dispatch.group = group;
  item.dispatch.counts_threads = countsThreads;
  [self push:std::move(item)];
}
- (void)dispatchThreadgroups:(MTLSize)threadgroupsPerGrid
       threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
  OPEN;
  [self dispatch:threadgroupsPerGrid group:threadsPerThreadgroup countsThreads:false];
}
- (void)dispatchThreads:(MTLSize)threadsPerGrid
    threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
  OPEN;
  [self dispatch:threadsPerGrid group:threadsPerThreadgroup countsThreads:true];
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)indirectBuffer
                          indirectBufferOffset:(NSUInteger)indirectBufferOffset
                         threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
  OPEN;
  SMBuffer* b = (SMBuffer*)indirectBuffer;
  CHECK(b && indirectBufferOffset % 4 == 0 && indirectBufferOffset + 12 <= b->_length,
        "dispatchThreadgroupsWithIndirectBuffer: no 12 bytes at offset %lu",
        (unsigned long)indirectBufferOffset);
  [_commands keep:b];
  sm::Item item{_next};
  item.dispatch.group = threadsPerThreadgroup;
  item.dispatch.indirect = {b, b->_serial, indirectBufferOffset, {}};
  [self push:std::move(item)];
}

- (void)use:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
  CHECK(resource, "useResource: nil");
  CHECK(usage, "useResource: without a usage");
  if (sm::strikes(sm::Fault::kSkipUseResource)) return;
  [_commands keep:resource];
  _pass.uses.push_back({((SMObject*)resource)->_serial, usage});
}
- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
  OPEN;
  [self use:resource usage:usage];
}
- (void)useResources:(const id<MTLResource> __unsafe_unretained[])resources
               count:(NSUInteger)count
               usage:(MTLResourceUsage)usage {
  OPEN;
  for (NSUInteger i = 0; i < count; ++i) [self use:resources[i] usage:usage];
}

- (void)executeCommandsInBuffer:(id<MTLIndirectCommandBuffer>)indirectCommandBuffer
                      withRange:(NSRange)executionRange {
  OPEN;
  SMIndirectBuffer* icb = (SMIndirectBuffer*)indirectCommandBuffer;
  CHECK(icb && NSMaxRange(executionRange) <= icb->_commands.size(),
        "executeCommandsInBuffer: commands %lu to %lu of %zu",
        (unsigned long)executionRange.location, (unsigned long)NSMaxRange(executionRange),
        icb ? icb->_commands.size() : 0);
  CHECK(executionRange.length <= 16384, "executeCommandsInBuffer: more than 16384 commands");
  if (![sm_device() supportsFamily:MTLGPUFamilyApple9])
    [self checkTouched:icb range:executionRange];
  [_commands keep:icb];
  sm::Item item{_next};
  item.indirect = icb;
  item.indirect_serial = icb->_serial;
  item.range = executionRange;
  [self push:std::move(item)];
}
/// Before Apple9, a GPU faults if no dispatch of the encoder has used the pipeline of an indirect
/// command; one of zero groups will do.
- (void)checkTouched:(SMIndirectBuffer*)icb range:(NSRange)range {
  for (NSUInteger i = range.location; i < NSMaxRange(range); ++i) {
    const sm::Dispatch& d = icb->_commands[i];
    if (!icb->_is_set[i] || !d.pipeline) continue;
    CHECK(_touched.count(d.pipeline_serial),
          "indirect command %lu: no dispatch of this encoder made its pipeline resident",
          (unsigned long)i);
  }
}

- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
  OPEN;
  if (sm::strikes(sm::Fault::kSkipBarrier)) return;
  if (scope & MTLBarrierScopeBuffers) _next.waits_for_all = true;
}
- (void)memoryBarrierWithResources:(const id<MTLResource> __unsafe_unretained[])resources
                             count:(NSUInteger)count {
  OPEN;
  if (sm::strikes(sm::Fault::kSkipBarrier)) return;
  for (NSUInteger i = 0; i < count; ++i) {
    _next.waits_for.insert(((SMObject*)resources[i])->_serial);
  }
}

- (void)endEncoding {
  CALL("compute");
  [super endEncoding];
}
- (void)updateFence:(id<MTLFence>)fence {
  CALL("compute");
  [super updateFence:fence];
}
- (void)waitForFence:(id<MTLFence>)fence {
  CALL("compute");
  [super waitForFence:fence];
}
@end
