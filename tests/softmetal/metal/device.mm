// The one device.
#include <dlfcn.h>

#include <cstring>

#import "archive.h"
#import "buffers.h"
#import "encoders.h"
#include "registry.h"

@implementation MTLArchitecture
- (NSString*)name {
  return @"softmetal";
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  return self;
}
@end

SMDevice* sm_device() {
  static SMDevice* const device = [SMDevice new];
  return device;
}

@implementation SMDevice
- (NSString*)name {
  return @"Software Metal";
}
- (uint64_t)registryID {
  return 1;
}
- (MTLArchitecture*)architecture {
  return [MTLArchitecture new];
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(1024, 1024, 1024);
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return kMslThreadgroupBytes;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return sm::setting("SOFTMETAL_MEMORY", 8l << 30);
}
- (BOOL)hasUnifiedMemory {
  return YES;
}
- (NSUInteger)maxBufferLength {
  return self.recommendedMaxWorkingSetSize / 2;
}
- (NSUInteger)currentAllocatedSize {
  return sm::Registry::allocated();
}
- (MTLArgumentBuffersTier)argumentBuffersSupport {
  return MTLArgumentBuffersTier2;
}
- (BOOL)supportsFamily:(MTLGPUFamily)gpuFamily {
  const NSInteger newest = 1000 + sm::setting("SOFTMETAL_FAMILY", 7);
  if (gpuFamily == MTLGPUFamilyMetal3 || gpuFamily == MTLGPUFamilyMac2) return YES;
  return gpuFamily <= newest;
}
- (BOOL)respondsToSelector:(SEL)aSelector {
  if (softmetal_macos_version() < 15 && aSelector == @selector(newResidencySetWithDescriptor:
                                                                                       error:)) {
    return NO;
  }
  return [super respondsToSelector:aSelector];
}

- (id<MTLCommandQueue>)newCommandQueue {
  return [SMQueue new];
}
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)maxCommandBufferCount {
  CHECK(maxCommandBufferCount > 0, "a queue for 0 command buffers");
  return [SMQueue new];
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  CALL("device");
  return sm_make_buffer(length, options);
}
- (id<MTLBuffer>)newBufferWithBytes:(const void*)pointer
                             length:(NSUInteger)length
                            options:(MTLResourceOptions)options {
  CALL("device");
  SMBuffer* buffer = sm_make_buffer(length, options);
  if (buffer) std::memcpy(buffer->_bytes, pointer, length);
  return buffer;
}
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)pointer
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void*, NSUInteger))deallocator {
  CALL("device");
  return sm_adopt_buffer(pointer, length, options, deallocator);
}

- (id<MTLLibrary>)newLibraryWithURL:(NSURL*)url error:(NSError* __autoreleasing*)error {
  CALL("device");
  return [SMLibrary newAtPath:url.path.UTF8String error:error];
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError* __autoreleasing*)error {
  CALL("device");
  const BOOL fast = options ? options.fastMathEnabled : YES;
  return [SMLibrary newFromSource:source.UTF8String fastMath:fast error:error];
}

- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)computeFunction
                                                             error:
                                                                 (NSError* __autoreleasing*)error {
  MTLComputePipelineDescriptor* descriptor = [MTLComputePipelineDescriptor new];
  descriptor.computeFunction = computeFunction;
  return [self newComputePipelineStateWithDescriptor:descriptor
                                             options:MTLPipelineOptionNone
                                          reflection:nil
                                               error:error];
}
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLComputePipelineReflection* __autoreleasing*)reflection
                                    error:(NSError* __autoreleasing*)error {
  CALL("device");
  SMFunction* function = (SMFunction*)descriptor.computeFunction;
  CHECK(function, "a pipeline without a function");
  std::string problem = [function missingConstants];
  if (sm::strikes(sm::Fault::kFailPipeline)) problem = "Compiler encountered an error (planted)";
  if (options & MTLPipelineOptionFailOnBinaryArchiveMiss) {
    bool found = false;
    for (SMBinaryArchive* archive in descriptor.binaryArchives) found |= [archive holds:function];
    if (!found) problem = "no binary archive holds the function";
  }
  if (!problem.empty()) {
    if (error) *error = sm_error(MTLLibraryErrorDomain, MTLLibraryErrorCompileFailure, problem);
    return nil;
  }
  SMPipeline* pipeline = [SMPipeline new];
  pipeline.label = descriptor.label;
  pipeline->_function = function;
  pipeline->_for_indirect = descriptor.supportIndirectCommandBuffers;
  pipeline->_whole_simdgroups = descriptor.threadGroupSizeIsMultipleOfThreadExecutionWidth;
  const NSUInteger most = sm::setting("SOFTMETAL_MAX_THREADS", 1024);
  const NSUInteger wanted = descriptor.maxTotalThreadsPerThreadgroup;
  CHECK(wanted <= 1024, "maxTotalThreadsPerThreadgroup: %lu", (unsigned long)wanted);
  pipeline->_maxThreads = wanted && wanted < most ? wanted : most;
  if (reflection) *reflection = [pipeline reflection];
  return pipeline;
}
- (void)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                      options:(MTLPipelineOption)options
                            completionHandler:(void (^)(id<MTLComputePipelineState>,
                                                        MTLComputePipelineReflection*,
                                                        NSError*))completionHandler {
  MTLComputePipelineDescriptor* copy = [descriptor copy];
  std::thread([=] {
    @autoreleasepool {
      NSError* error = nil;
      MTLComputePipelineReflection* reflection = nil;
      id<MTLComputePipelineState> state = [self newComputePipelineStateWithDescriptor:copy
                                                                              options:options
                                                                           reflection:&reflection
                                                                                error:&error];
      completionHandler(state, reflection, error);
    }
  }).detach();
}
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor
                                                 error:(NSError* __autoreleasing*)error {
  SMBinaryArchive* archive = [SMBinaryArchive new];
  if (!descriptor.url || [archive load:descriptor.url.path.UTF8String]) return archive;
  if (error) *error = sm_error(MTLLibraryErrorDomain, MTLLibraryErrorInternal, "invalid archive");
  return nil;
}

- (id<MTLIndirectCommandBuffer>)newIndirectCommandBufferWithDescriptor:
                                    (MTLIndirectCommandBufferDescriptor*)descriptor
                                                       maxCommandCount:(NSUInteger)maxCount
                                                               options:(MTLResourceOptions)options {
  CALL("device");
  CHECK(maxCount > 0 && maxCount <= 16384, "an indirect command buffer of %lu commands",
        (unsigned long)maxCount);
  CHECK(descriptor.maxKernelBufferBindCount <= kMslBuffers, "maxKernelBufferBindCount: %lu",
        (unsigned long)descriptor.maxKernelBufferBindCount);
  (void)options;
  if (sm::strikes(sm::Fault::kFailAllocation)) return nil;
  return [[SMIndirectBuffer alloc] initWithDescriptor:descriptor count:maxCount];
}
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferBinding:(id<MTLBufferBinding>)bufferBinding {
  (void)bufferBinding;
  sm::fail("newArgumentEncoderWithBufferBinding: is not imitated");
}

- (id<MTLFence>)newFence {
  return [SMFence new];
}
- (id<MTLEvent>)newEvent {
  return [SMEvent new];
}
- (id<MTLSharedEvent>)newSharedEvent {
  return [SMEvent new];
}
- (id<MTLResidencySet>)newResidencySetWithDescriptor:(MTLResidencySetDescriptor*)desc
                                               error:(NSError* __autoreleasing*)error {
  CALL("device");
  (void)error;
  CHECK(softmetal_macos_version() >= 15, "residency sets exist from macOS 15 on");
  return [[SMResidencySet alloc] initWithLabel:desc.label];
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  return sm::setting("SOFTMETAL_FAMILY", 7) == 0 ? nil : sm_device();
}

NSArray<id<MTLDevice>>* MTLCopyAllDevices(void) {
  id<MTLDevice> device = sm_device();
  return [NSArray arrayWithObjects:&device count:1];
}
