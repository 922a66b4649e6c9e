// Cases of flow: work that nobody waits for, errors, events, blits, residency sets, libraries.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#import "rig.h"

CASE(completion_handlers) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 1, 1, 1});
  auto order = std::make_shared<std::vector<int>>();
  id<MTLCommandBuffer> last = nil;
  for (int i = 0; i < 20; ++i) {
    last = [rig.queue commandBuffer];
    id<MTLComputeCommandEncoder> e = [last computeCommandEncoder];
    encode_scale(rig, e, x, x, 4);
    [e endEncoding];
    [last addCompletedHandler:^(id<MTLCommandBuffer> done) {
      EXPECT(done.status == MTLCommandBufferStatusCompleted);
      EXPECT(done.GPUEndTime >= done.GPUStartTime);
      order->push_back(i);
    }];
    [last commit];
  }
  [last waitUntilCompleted];
  softmetal_settle();
  EXPECT(data(x)[0] == 1048576);
  EXPECT(order->size() == 20);
  for (int i = 0; i < 20; ++i) EXPECT((*order)[i] == i);
}

CASE(enqueued_order) {
  Rig rig;
  auto order = std::make_shared<std::vector<int>>();
  id<MTLCommandBuffer> first = [rig.queue commandBuffer], second = [rig.queue commandBuffer];
  [first addCompletedHandler:^(id<MTLCommandBuffer>) {
    order->push_back(1);
  }];
  [second addCompletedHandler:^(id<MTLCommandBuffer>) {
    order->push_back(2);
  }];
  [first enqueue];
  [second commit];
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT(second.status != MTLCommandBufferStatusCompleted);
  [first commit];
  [second waitUntilCompleted];
  softmetal_settle();
  EXPECT((*order == std::vector<int>{1, 2}));
}

CASE(failing_command_buffer) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 1, 1, 1});
  softmetal_plant("fail_command_buffer:2");
  MTLCommandBufferStatus want[] = {MTLCommandBufferStatusCompleted, MTLCommandBufferStatusError,
                                   MTLCommandBufferStatusCompleted};
  for (MTLCommandBufferStatus status : want) {
    id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
    id<MTLComputeCommandEncoder> e = [commands computeCommandEncoder];
    encode_scale(rig, e, x, x, 4);
    [e endEncoding];
    [commands commit];
    [commands waitUntilCompleted];
    EXPECT(commands.status == status);
    const bool failed = status == MTLCommandBufferStatusError;
    EXPECT((commands.error != nil) == failed);
    EXPECT(!failed || [commands.error.domain isEqualToString:MTLCommandBufferErrorDomain]);
    EXPECT(!failed || commands.error.code == MTLCommandBufferErrorPageFault);
  }
  EXPECT(data(x)[0] == 4);
  EXPECT(softmetal_planted() == 0);
}

CASE(late_results) {
  setenv("SOFTMETAL_DELAY_US", "20000", 1);
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 1, 1, 1}), out = rig.buffer(16);
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  id<MTLComputeCommandEncoder> e = [commands computeCommandEncoder];
  encode_scale(rig, e, x, out, 4);
  [e endEncoding];
  [commands commit];
  EXPECT(data(out)[0] == 0);
  [commands waitUntilCompleted];
  EXPECT(data(out)[0] == 2);
}

CASE(shared_events) {
  Rig rig;
  id<MTLCommandQueue> other = rig.own([rig.device newCommandQueue]);
  id<MTLSharedEvent> event = rig.own([rig.device newSharedEvent]);
  id<MTLBuffer> x = rig.floats({1, 1, 1, 1}), y = rig.buffer(16), z = rig.buffer(16);
  id<MTLCommandBuffer> second = [rig.queue commandBuffer], first = [other commandBuffer];
  [second encodeWaitForEvent:event value:1];
  id<MTLComputeCommandEncoder> e = [second computeCommandEncoder];
  encode_scale(rig, e, y, z, 4);
  [e endEncoding];
  [second encodeSignalEvent:event value:2];
  [second commit];
  e = [first computeCommandEncoder];
  encode_scale(rig, e, x, y, 4);
  [e endEncoding];
  [first encodeSignalEvent:event value:1];
  [first commit];
  EXPECT([event waitUntilSignaledValue:2 timeoutMS:10000]);
  EXPECT(data(z)[0] == 4);
  MTLSharedEventListener* listener = rig.own([[MTLSharedEventListener alloc] init]);
  __block uint64_t seen = 0;
  [event notifyListener:listener
                atValue:5
                  block:^(id<MTLSharedEvent>, uint64_t value) {
                    seen = value;
                  }];
  EXPECT(seen == 0);
  event.signaledValue = 6;
  EXPECT(seen == 6);
  [second waitUntilCompleted];
}

CASE(blits) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 2, 3, 4}), y = rig.buffer(32, MTLResourceStorageModePrivate),
                z = rig.buffer(32);
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  id<MTLBlitCommandEncoder> blit = [commands blitCommandEncoder];
  [blit fillBuffer:y range:NSMakeRange(0, 32) value:0xff];
  [blit copyFromBuffer:x sourceOffset:4 toBuffer:y destinationOffset:8 size:8];
  [blit copyFromBuffer:y sourceOffset:0 toBuffer:z destinationOffset:0 size:32];
  [blit endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  EXPECT(data(z)[2] == 2 && data(z)[3] == 3);
  EXPECT(static_cast<uint8_t*>(z.contents)[31] == 0xff);
}

CASE(residency_sets) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 2, 3, 4}), out = rig.buffer(16), dims = rig.words({4});
  id<MTLBuffer> table = rig.buffer(24);
  const uint64_t pointers[] = {x.gpuAddress, out.gpuAddress, dims.gpuAddress};
  std::memcpy(table.contents, pointers, sizeof pointers);
  NSError* error = nil;
  MTLResidencySetDescriptor* d = [[[MTLResidencySetDescriptor alloc] init] autorelease];
  id<MTLResidencySet> set = rig.own([rig.device newResidencySetWithDescriptor:d error:&error]);
  [set addAllocation:x];
  [set addAllocation:out];
  [set addAllocation:dims];
  [set removeAllocation:dims];
  [set addAllocation:dims];
  EXPECT(set.allocationCount == 3 && [set containsAllocation:x]);
  [set commit];
  [set requestResidency];
  [rig.queue addResidencySet:set];
  compute(rig, MTLDispatchTypeConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("scale__table")];
    [e setBuffer:table offset:0 atIndex:0];
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  });
  EXPECT(data(out)[3] == 8);
  [rig.queue removeResidencySet:set];
}

CASE(fenced_untracked) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 1, 1, 1}), z = rig.buffer(16);
  id<MTLBuffer> y = rig.buffer(16, MTLResourceHazardTrackingModeUntracked);
  id<MTLFence> fence = rig.own([rig.device newFence]);
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  for (int i = 0; i < 2; ++i) {
    id<MTLComputeCommandEncoder> e = [commands computeCommandEncoder];
    if (i) [e waitForFence:fence];
    encode_scale(rig, e, i ? y : x, i ? z : y, 4);
    if (!i) [e updateFence:fence];
    [e endEncoding];
  }
  [commands commit];
  [commands waitUntilCompleted];
  EXPECT(data(z)[0] == 4);
}

CASE(resource_barrier) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 1, 1, 1}), y = rig.buffer(16), z = rig.buffer(16);
  compute(rig, MTLDispatchTypeConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    encode_scale(rig, e, x, y, 4);
    id<MTLResource> one[] = {y};
    [e memoryBarrierWithResources:one count:1];
    encode_scale(rig, e, y, z, 4);
  });
  EXPECT(data(z)[0] == 4);
}

CASE(apart_in_one_buffer) {
  Rig rig;
  id<MTLBuffer> pool = rig.buffer(1024);
  compute(rig, MTLDispatchTypeConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    for (int i = 1; i < 8; ++i) encode_scale(rig, e, pool, pool, 4, i * 16);
  });
}

CASE(adopted_pages) {
  Rig rig;
  void* pages = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto base = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(pages) + 16383) & ~16383ul);
  __block bool freed = false;
  id<MTLBuffer> x = [rig.device newBufferWithBytesNoCopy:base
                                                  length:16384
                                                 options:MTLResourceStorageModeShared
                                             deallocator:^(void*, NSUInteger length) {
                                               freed = length == 16384;
                                             }];
  @autoreleasepool {
    EXPECT(x.contents == base);
  }
  [x release];
  EXPECT(freed);
}

CASE(missing_function_constant) {
  Rig rig;
  NSError* error = nil;
  MTLFunctionConstantValues* none = [[[MTLFunctionConstantValues alloc] init] autorelease];
  EXPECT(![rig.library newFunctionWithName:@"scale" constantValues:none error:&error]);
  EXPECT(std::strstr(error.localizedDescription.UTF8String, "scale_factor"));
  id<MTLFunction> plain = rig.own([rig.library newFunctionWithName:@"scale"]);
  EXPECT(![rig.device newComputePipelineStateWithFunction:plain error:&error]);
}
CASE(missing_kernel) {
  Rig rig;
  NSError* error = nil;
  EXPECT(![rig.library newFunctionWithName:@"nowhere" constantValues:constants() error:&error]);
  EXPECT(error.code == MTLLibraryErrorFunctionNotFound);
  EXPECT(![rig.library newFunctionWithName:@"nowhere"]);
}
CASE(no_memory) {
  Rig rig;
  softmetal_plant("fail_allocation");
  EXPECT(![rig.device newBufferWithLength:16 options:MTLResourceStorageModeShared]);
  EXPECT(rig.buffer(16));
}
CASE(failing_pipeline) {
  Rig rig;
  NSError* error = nil;
  id<MTLFunction> f = rig.own([rig.library newFunctionWithName:@"scale"
                                                constantValues:constants()
                                                         error:&error]);
  softmetal_plant("fail_pipeline");
  EXPECT(![rig.device newComputePipelineStateWithFunction:f error:&error]);
  EXPECT(error.localizedDescription.length > 0);
}
CASE(corrupt_library) {
  Rig rig;
  std::ifstream in(library_path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto refused = [&](const std::string& text) {
    const std::string path = library_path + ".corrupt";
    std::ofstream(path, std::ios::binary) << text;
    NSError* error = nil;
    NSURL* url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:path.c_str()]];
    return ![rig.device newLibraryWithURL:url error:&error] &&
           error.code == MTLLibraryErrorInternal;
  };
  EXPECT(refused(""));
  EXPECT(refused("no library"));
  EXPECT(refused(bytes.substr(0, bytes.size() / 2)));
  bytes[bytes.size() / 2] ^= 1;
  EXPECT(refused(bytes));
}
CASE(library_from_source) {
  Rig rig;
  NSError* error = nil;
  MTLCompileOptions* options = [[[MTLCompileOptions alloc] init] autorelease];
  options.mathMode = MTLMathModeSafe;
  NSString* good = @"#include <metal_stdlib>\n"
                    "kernel void seven(device float* x [[buffer(0)]],\n"
                    "                  uint i [[thread_position_in_grid]]) { x[i] = 7.0f; }\n";
  id<MTLLibrary> library = rig.own([rig.device newLibraryWithSource:good
                                                            options:options
                                                              error:&error]);
  EXPECT(library);
  id<MTLFunction> f = rig.own([library newFunctionWithName:@"seven"]);
  id<MTLComputePipelineState> pipeline =
      rig.own([rig.device newComputePipelineStateWithFunction:f error:&error]);
  id<MTLBuffer> x = rig.buffer(16);
  compute(rig, MTLDispatchTypeSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:pipeline];
    [e setBuffer:x offset:0 atIndex:0];
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  });
  EXPECT(data(x)[3] == 7);
  NSString* bad = @"#include <metal_stdlib>\n"
                   "kernel void f(device float* x [[buffer(0)]]) { threadgroup float* y = x; }\n";
  EXPECT(![rig.device newLibraryWithSource:bad options:options error:&error]);
  EXPECT(error.code == MTLLibraryErrorCompileFailure);
}
CASE(reflection) {
  Rig rig;
  NSError* error = nil;
  MTLComputePipelineReflection* reflection = nil;
  MTLComputePipelineDescriptor* d = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
  d.computeFunction = rig.own([rig.library newFunctionWithName:@"rms_norm"
                                                constantValues:constants()
                                                         error:&error]);
  id<MTLComputePipelineState> p =
      rig.own([rig.device newComputePipelineStateWithDescriptor:d
                                                        options:MTLPipelineOptionBindingInfo
                                                     reflection:&reflection
                                                          error:&error]);
  EXPECT(p.staticThreadgroupMemoryLength == 32);
  EXPECT(reflection.bindings.count == 4);
  EXPECT([reflection.bindings[2].name isEqualToString:@"out"]);
  EXPECT(reflection.bindings[2].access == MTLBindingAccessReadWrite);
  EXPECT(reflection.bindings[3].access == MTLBindingAccessReadOnly);
}
CASE(old_shared_memory) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(128);
  compute(rig, MTLDispatchTypeSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("reads_old_shared")];
    [e setBuffer:x offset:0 atIndex:0];
    [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
  });
  EXPECT(static_cast<uint32_t*>(x.contents)[7] == 0xAAAAAAAA);
}
CASE(objective_c) {
  Rig rig;
  EXPECT([rig.device conformsToProtocol:@protocol(MTLDevice)]);
  EXPECT([rig.device respondsToSelector:@selector(newCommandQueue)]);
  EXPECT([@"a" isEqualToString:[NSString stringWithUTF8String:"a"]]);
  int names = 0;
  for (NSString* name in rig.library.functionNames) names += [name isEqualToString:@"scale"];
  EXPECT(names == 1);
  try {
    @autoreleasepool {
      throw std::string("through");
    }
  } catch (const std::string& s) {
    EXPECT(s == "through");
  }
  NSProcessInfo* info = NSProcessInfo.processInfo;
  EXPECT(([info isOperatingSystemAtLeastVersion:{14, 0, 0}] && info.physicalMemory > 0));
}
