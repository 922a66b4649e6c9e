// Pipelines, their descriptors and what they tell about their kernel.
#import "objects.h"

@implementation MTLPipelineBufferDescriptor
@synthesize mutability = _mutability;
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLPipelineBufferDescriptor* copy = [MTLPipelineBufferDescriptor new];
  copy.mutability = _mutability;
  return copy;
}
@end

@implementation MTLPipelineBufferDescriptorArray {
  std::map<NSUInteger, MTLPipelineBufferDescriptor*> _items;
}
- (MTLPipelineBufferDescriptor*)objectAtIndexedSubscript:(NSUInteger)bufferIndex {
  MTLPipelineBufferDescriptor* __strong& item = _items[bufferIndex];
  if (!item) item = [MTLPipelineBufferDescriptor new];
  return item;
}
- (void)setObject:(MTLPipelineBufferDescriptor*)buffer atIndexedSubscript:(NSUInteger)bufferIndex {
  _items[bufferIndex] = [buffer copy];
}
@end

@implementation MTLComputePipelineDescriptor
@synthesize label = _label, computeFunction = _computeFunction,
            threadGroupSizeIsMultipleOfThreadExecutionWidth = _wholeSimdgroups,
            maxTotalThreadsPerThreadgroup = _maxTotalThreadsPerThreadgroup, buffers = _buffers,
            supportIndirectCommandBuffers = _supportIndirectCommandBuffers,
            binaryArchives = _binaryArchives;
- (instancetype)init {
  [self reset];
  return self;
}
- (void)reset {
  _label = nil;
  _computeFunction = nil;
  _wholeSimdgroups = NO;
  _maxTotalThreadsPerThreadgroup = 0;
  _buffers = [MTLPipelineBufferDescriptorArray new];
  _supportIndirectCommandBuffers = NO;
  _binaryArchives = nil;
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLComputePipelineDescriptor* copy = [MTLComputePipelineDescriptor new];
  copy.label = _label;
  copy.computeFunction = _computeFunction;
  copy.threadGroupSizeIsMultipleOfThreadExecutionWidth = _wholeSimdgroups;
  copy.maxTotalThreadsPerThreadgroup = _maxTotalThreadsPerThreadgroup;
  copy->_buffers = _buffers;
  copy.supportIndirectCommandBuffers = _supportIndirectCommandBuffers;
  copy.binaryArchives = _binaryArchives;
  return copy;
}
@end

@interface SMBinding : NSObject <MTLBufferBinding> {
 @public
  const MslBuffer* _buffer;
}
@end

@implementation SMBinding
- (NSString*)name {
  return [NSString stringWithUTF8String:_buffer->name];
}
- (MTLBindingType)type {
  return MTLBindingTypeBuffer;
}
- (MTLBindingAccess)access {
  return _buffer->writes ? MTLBindingAccessReadWrite : MTLBindingAccessReadOnly;
}
- (NSUInteger)index {
  return _buffer->index;
}
- (BOOL)isUsed {
  return YES;
}
- (BOOL)isArgument {
  return YES;
}
- (NSUInteger)bufferAlignment {
  return _buffer->alignment;
}
- (NSUInteger)bufferDataSize {
  return _buffer->size;
}
@end

@interface MTLComputePipelineReflection () {
 @public
  NSArray<id<MTLBinding>>* _all;
}
@end

@implementation MTLComputePipelineReflection
- (NSArray<id<MTLBinding>>*)bindings {
  return _all;
}
@end

@implementation SMPipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return _maxThreads;
}
- (NSUInteger)threadExecutionWidth {
  return kMslLanes;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  return _function->_kernel->shared_bytes;
}
- (BOOL)supportIndirectCommandBuffers {
  return _for_indirect;
}
- (NSUInteger)allocatedSize {
  return 0;
}
- (MTLComputePipelineReflection*)reflection {
  std::vector<id> bindings;
  const MslKernel& kernel = *_function->_kernel;
  for (uint32_t i = 0; i < kernel.n_buffers; ++i) {
    SMBinding* binding = [SMBinding new];
    binding->_buffer = &kernel.buffers[i];
    bindings.push_back(binding);
  }
  MTLComputePipelineReflection* reflection = [MTLComputePipelineReflection new];
  reflection->_all = [NSArray arrayWithObjects:bindings.data() count:bindings.size()];
  return reflection;
}
@end
