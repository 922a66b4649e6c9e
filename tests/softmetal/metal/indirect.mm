// Indirect command buffers. They do not retain what their commands use.
#import "buffers.h"
#import "encoders.h"

@interface SMIndirectCommand : NSObject <MTLIndirectComputeCommand> {
 @public
  SMIndirectBuffer* _icb;
  NSUInteger _index;
}
@end

@implementation MTLIndirectCommandBufferDescriptor
@synthesize commandTypes = _commandTypes, inheritPipelineState = _inheritPipelineState,
            inheritBuffers = _inheritBuffers, maxKernelBufferBindCount = _maxKernelBufferBindCount,
            maxKernelThreadgroupMemoryBindCount = _maxKernelThreadgroupMemoryBindCount;
- (instancetype)init {
  _inheritPipelineState = YES;
  _inheritBuffers = YES;
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLIndirectCommandBufferDescriptor* copy = [MTLIndirectCommandBufferDescriptor new];
  copy->_commandTypes = _commandTypes;
  copy->_inheritPipelineState = _inheritPipelineState;
  copy->_inheritBuffers = _inheritBuffers;
  copy->_maxKernelBufferBindCount = _maxKernelBufferBindCount;
  copy->_maxKernelThreadgroupMemoryBindCount = _maxKernelThreadgroupMemoryBindCount;
  return copy;
}
@end

@implementation SMIndirectBuffer
- (instancetype)initWithDescriptor:(MTLIndirectCommandBufferDescriptor*)descriptor
                             count:(NSUInteger)count {
  self = [super init];
  _descriptor = [descriptor copy];
  _commands.resize(count);
  _is_set.resize(count);
  return self;
}
- (void)checkIdle {
  CHECK(_in_flight == 0, "an indirect command buffer changes while the GPU may execute it");
}
- (NSUInteger)size {
  return _commands.size();
}
- (NSUInteger)allocatedSize {
  return _commands.size() * 256;
}
- (MTLStorageMode)storageMode {
  return MTLStorageModeShared;
}
- (MTLCPUCacheMode)cpuCacheMode {
  return MTLCPUCacheModeDefaultCache;
}
- (MTLHazardTrackingMode)hazardTrackingMode {
  return MTLHazardTrackingModeTracked;
}
- (MTLResourceOptions)resourceOptions {
  return MTLResourceStorageModeShared;
}
- (MTLPurgeableState)setPurgeableState:(MTLPurgeableState)state {
  return state;
}
- (void)resetWithRange:(NSRange)range {
  CALL("indirect");
  [self checkIdle];
  CHECK(NSMaxRange(range) <= _commands.size(), "resetWithRange: past the end");
  for (NSUInteger i = range.location; i < NSMaxRange(range); ++i) {
    _commands[i] = sm::Dispatch();
    _is_set[i] = 0;
  }
}
- (id<MTLIndirectComputeCommand>)indirectComputeCommandAtIndex:(NSUInteger)commandIndex {
  CHECK(commandIndex < _commands.size(), "indirect command %lu of %zu", (unsigned long)commandIndex,
        _commands.size());
  SMIndirectCommand* command = [SMIndirectCommand new];
  command->_icb = self;
  command->_index = commandIndex;
  return command;
}
- (void)dealloc {
  CHECK(_in_flight == 0, "an indirect command buffer was released while the GPU may execute it");
}
@end

#define CHANGE      \
  CALL("indirect"); \
  [_icb checkIdle]; \
  sm::Dispatch& command = _icb->_commands[_index]

@implementation SMIndirectCommand
- (void)setComputePipelineState:(id<MTLComputePipelineState>)pipelineState {
  CHANGE;
  SMPipeline* pipeline = (SMPipeline*)pipelineState;
  CHECK(!_icb->_descriptor.inheritPipelineState,
        "setComputePipelineState: in an indirect command buffer that inherits it");
  CHECK(pipeline && pipeline->_for_indirect,
        "the pipeline of an indirect command was made without supportIndirectCommandBuffers");
  command.pipeline = pipeline;
  command.pipeline_serial = pipeline->_serial;
}
- (void)setKernelBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  CHANGE;
  if (sm::strikes(sm::Fault::kShiftBinding)) ++index;
  if (sm::strikes(sm::Fault::kShiftOffset)) offset += 16;
  SMBuffer* b = (SMBuffer*)buffer;
  CHECK(!_icb->_descriptor.inheritBuffers,
        "setKernelBuffer: in an indirect command buffer that inherits buffers");
  CHECK(index < _icb->_descriptor.maxKernelBufferBindCount,
        "setKernelBuffer: index %lu, maxKernelBufferBindCount is %lu", (unsigned long)index,
        (unsigned long)_icb->_descriptor.maxKernelBufferBindCount);
  CHECK(b, "setKernelBuffer: nil");
  CHECK(offset < b->_length, "setKernelBuffer: offset %lu in a buffer of %zu bytes",
        (unsigned long)offset, b->_length);
  command.bindings[index] = {b, b->_serial, offset, {}};
  sm_miscount(b);
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  CHANGE;
  CHECK(index < _icb->_descriptor.maxKernelThreadgroupMemoryBindCount,
        "setThreadgroupMemoryLength: index %lu, maxKernelThreadgroupMemoryBindCount is %lu",
        (unsigned long)index, (unsigned long)_icb->_descriptor.maxKernelThreadgroupMemoryBindCount);
  command.threadgroup_bytes[index] = length;
}
- (void)dispatch:(MTLSize)grid group:(MTLSize)group type:(MTLIndirectCommandType)type {
  CHECK(_icb->_descriptor.commandTypes & type,
        "an indirect command buffer that was not made for this kind of dispatch");
  sm::Dispatch& command = _icb->_commands[_index];
  command.grid = grid;
  command.group = group;
  command.counts_threads = type == MTLIndirectCommandTypeConcurrentDispatchThreads;
  _icb->_is_set[_index] = 1;
}
- (void)concurrentDispatchThreadgroups:(MTLSize)threadgroupsPerGrid
                 threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
  CALL("indirect");
  [_icb checkIdle];
  [self dispatch:threadgroupsPerGrid
           group:threadsPerThreadgroup
            type:MTLIndirectCommandTypeConcurrentDispatch];
}
- (void)concurrentDispatchThreads:(MTLSize)threadsPerGrid
            threadsPerThreadgroup:(MTLSize)threadsPerThreadgroup {
  CALL("indirect");
  [_icb checkIdle];
  [self dispatch:threadsPerGrid
           group:threadsPerThreadgroup
            type:MTLIndirectCommandTypeConcurrentDispatchThreads];
}
- (void)setBarrier {
  CHANGE;
  if (sm::strikes(sm::Fault::kSkipBarrier)) return;
  command.waits_for_all = true;
}
- (void)clearBarrier {
  CHANGE;
  command.waits_for_all = false;
}
- (void)reset {
  CHANGE;
  command = sm::Dispatch();
  _icb->_is_set[_index] = 0;
}
@end
