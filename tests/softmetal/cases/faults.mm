// Cases that misuse Metal: each must end with the message that test_softmetal_faults.py names.
#include <sys/mman.h>

#import "rig.h"

namespace {

constexpr auto kSerial = MTLDispatchTypeSerial, kConcurrent = MTLDispatchTypeConcurrent;

/// scale__table with pointers written by hand, as plain GPU addresses.
id<MTLBuffer> table(Rig& rig, id<MTLBuffer> x, id<MTLBuffer> out, id<MTLBuffer> dims) {
  id<MTLBuffer> t = rig.buffer(24);
  auto words = static_cast<uint64_t*>(t.contents);
  words[0] = x.gpuAddress;
  words[1] = out ? out.gpuAddress : 0;
  words[2] = dims.gpuAddress;
  return t;
}

void dispatch_table(Rig& rig, id<MTLComputeCommandEncoder> e, id<MTLBuffer> t) {
  [e setComputePipelineState:rig.pipeline("scale__table")];
  [e setBuffer:t offset:0 atIndex:0];
  [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
}

/// One group of 64 threads of a kernel with one buffer of 256 bytes.
void run_alone(const char* kernel, size_t threadgroup_bytes = 0) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(256);
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline(kernel)];
    [e setBuffer:x offset:0 atIndex:0];
    if (threadgroup_bytes) [e setThreadgroupMemoryLength:threadgroup_bytes atIndex:0];
    [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 1)];
  });
}

}  // namespace

// ---- bindings
CASE(unbound_buffer) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16);
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("scale")];
    [e setBuffer:x offset:0 atIndex:0];
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  });
}
CASE(wrong_binding_index) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), out = rig.buffer(16);
  softmetal_plant("shift_binding:2");
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) { encode_scale(rig, e, x, out, 4); });
}
CASE(offset_past_end) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16);
  compute(rig, kSerial,
          [&](id<MTLComputeCommandEncoder> e) { [e setBuffer:x offset:16 atIndex:0]; });
}
CASE(misaligned_offset) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), out = rig.buffer(32);
  compute(rig, kSerial,
          [&](id<MTLComputeCommandEncoder> e) { encode_scale(rig, e, x, out, 4, 2); });
}
CASE(long_bytes) {
  Rig rig;
  const std::vector<char> bytes(4097);
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setBytes:bytes.data() length:bytes.size() atIndex:0];
  });
}
CASE(output_as_bytes) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16);
  const float four[4] = {};
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("scale")];
    [e setBuffer:x offset:0 atIndex:0];
    [e setBytes:four length:16 atIndex:1];
    [e setBuffer:x offset:0 atIndex:2];
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  });
}
CASE(write_past_end) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(64), out = rig.buffer(32);
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) { encode_scale(rig, e, x, out, 9); });
}
CASE(read_past_end) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), out = rig.buffer(16);
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("off_by_one")];
    [e setBuffer:x offset:0 atIndex:0];
    [e setBuffer:out offset:0 atIndex:1];
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  });
}

// ---- residency
CASE(forgotten_use_resource) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), out = rig.buffer(16), dims = rig.words({4});
  softmetal_plant("skip_use_resource:2");
  compute(rig, kConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    id<MTLResource> all[] = {x, out, dims};
    [e useResources:all count:3 usage:MTLResourceUsageRead | MTLResourceUsageWrite];
    dispatch_table(rig, e, table(rig, x, out, dims));
  });
}
CASE(use_resource_after_dispatch) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), out = rig.buffer(16), dims = rig.words({4});
  compute(rig, kConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    dispatch_table(rig, e, table(rig, x, out, dims));
    id<MTLResource> all[] = {x, out, dims};
    [e useResources:all count:3 usage:MTLResourceUsageRead | MTLResourceUsageWrite];
  });
}
CASE(write_to_read_only_resource) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), out = rig.buffer(16), dims = rig.words({4});
  compute(rig, kConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    id<MTLResource> all[] = {x, out, dims};
    [e useResources:all count:3 usage:MTLResourceUsageRead];
    dispatch_table(rig, e, table(rig, x, out, dims));
  });
}
CASE(pointer_to_nothing) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), dims = rig.words({4});
  compute(rig, kConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    id<MTLResource> all[] = {x, dims};
    [e useResources:all count:2 usage:MTLResourceUsageRead];
    dispatch_table(rig, e, table(rig, x, nil, dims));
  });
}
CASE(released_buffer) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16);
  id<MTLBuffer> out = [rig.device newBufferWithLength:16 options:MTLResourceStorageModeShared];
  id<MTLCommandBuffer> commands = [rig.queue commandBufferWithUnretainedReferences];
  id<MTLComputeCommandEncoder> e = [commands computeCommandEncoder];
  encode_scale(rig, e, x, out, 4);
  [e endEncoding];
  [out release];
  [commands commit];
  [commands waitUntilCompleted];
}

// ---- hazards
CASE(missing_barrier) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(64);
  compute(rig, kConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    encode_scale(rig, e, x, x, 4, 32);
    id<MTLBuffer> out = rig.buffer(64);
    [e memoryBarrierWithScope:MTLBarrierScopeTextures];
    [e setBuffer:x offset:32 atIndex:0];
    [e setBuffer:out offset:0 atIndex:1];
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  });
}
CASE(planted_missing_barrier) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), y = rig.buffer(16), z = rig.buffer(16);
  softmetal_plant("skip_barrier");
  compute(rig, kConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    encode_scale(rig, e, x, y, 4);
    [e memoryBarrierWithScope:MTLBarrierScopeBuffers];
    encode_scale(rig, e, y, z, 4);
  });
}
CASE(barrier_on_other_resource) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), y = rig.buffer(16), z = rig.buffer(16);
  compute(rig, kConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    encode_scale(rig, e, x, y, 4);
    id<MTLResource> other[] = {x};
    [e memoryBarrierWithResources:other count:1];
    encode_scale(rig, e, y, z, 4);
  });
}
CASE(untracked_between_encoders) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16), z = rig.buffer(16);
  id<MTLBuffer> y = rig.buffer(16, MTLResourceHazardTrackingModeUntracked);
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  for (int i = 0; i < 2; ++i) {
    id<MTLComputeCommandEncoder> e = [commands computeCommandEncoder];
    encode_scale(rig, e, i ? y : x, i ? z : y, 4);
    [e endEncoding];
  }
  [commands commit];
  [commands waitUntilCompleted];
}

// ---- threads
CASE(too_many_threads) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16);
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) {
    encode_scale(rig, e, x, rig.buffer(16), 4);
    [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1025, 1, 1)];
  });
}
CASE(too_much_threadgroup_memory) { run_alone("large_shared"); }
CASE(odd_threadgroup_memory) { run_alone("reverse_group", 250); }
CASE(divergent_sum) { run_alone("divergent_sum"); }
CASE(divergent_barrier) { run_alone("divergent_barrier"); }
CASE(race_in_group) { run_alone("reverse_without_barrier", 256); }
CASE(loop_past_end) { run_alone("clears_too_much"); }
CASE(race_in_simdgroup) { run_alone("neighbour_after_sum"); }
CASE(no_race_in_simdgroup) { run_alone("neighbour_after_barrier"); }
CASE(threadgroup_memory_past_end) { run_alone("reverse_group", 128); }

// ---- encoders and command buffers
CASE(two_encoders) {
  Rig rig;
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  [commands computeCommandEncoder];
  [commands computeCommandEncoder];
}
CASE(encode_after_end) {
  Rig rig;
  id<MTLComputeCommandEncoder> e = [[rig.queue commandBuffer] computeCommandEncoder];
  [e endEncoding];
  [e setComputePipelineState:rig.pipeline("scale")];
}
CASE(commit_with_open_encoder) {
  Rig rig;
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  [commands computeCommandEncoder];
  [commands commit];
}
CASE(commit_twice) {
  Rig rig;
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  [commands commit];
  [commands commit];
}
CASE(wait_before_commit) {
  Rig rig;
  [[rig.queue commandBuffer] waitUntilCompleted];
}
CASE(late_handler) {
  Rig rig;
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  [commands commit];
  [commands addCompletedHandler:^(id<MTLCommandBuffer>){
  }];
}
CASE(encoder_not_ended) {
  Rig rig;
  @autoreleasepool {
    [[rig.queue commandBuffer] computeCommandEncoder];
  }
}
CASE(no_pipeline) {
  Rig rig;
  compute(rig, kSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(4, 1, 1)];
  });
}

// ---- buffers
CASE(half_a_page) {
  Rig rig;
  void* page = mmap(nullptr, 32768, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  [rig.device newBufferWithBytesNoCopy:page
                                length:4096
                               options:MTLResourceStorageModeShared
                           deallocator:nil];
}
CASE(contents_of_private) {
  Rig rig;
  EXPECT(rig.buffer(16, MTLResourceStorageModePrivate).contents);
}
CASE(blit_past_end) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16);
  [[[rig.queue commandBuffer] blitCommandEncoder] fillBuffer:x range:NSMakeRange(8, 12) value:0];
}
CASE(blit_onto_itself) {
  Rig rig;
  id<MTLBuffer> x = rig.buffer(16);
  [[[rig.queue commandBuffer] blitCommandEncoder] copyFromBuffer:x
                                                    sourceOffset:0
                                                        toBuffer:x
                                               destinationOffset:4
                                                            size:8];
}
CASE(wrong_type_of_constant) {
  Rig rig;
  const uint32_t one = 1;
  MTLFunctionConstantValues* values = constants();
  [values setConstantValue:&one type:MTLDataTypeUInt withName:@"scale_factor"];
  NSError* error = nil;
  id<MTLFunction> f = [rig.library newFunctionWithName:@"scale" constantValues:values error:&error];
  expect(f, error.localizedDescription.UTF8String);
}

// ---- objects
CASE(leaked_object) {
  Rig rig;
  [rig.buffer(16) retain];
}
CASE(leaked_block) {
  Rig rig;
  int captured = 1;
  void (^block)() = ^{
    EXPECT(captured);
  };
  [block copy];
}
CASE(released_twice) {
  Rig rig;
  id<MTLBuffer> x = [rig.device newBufferWithLength:16 options:MTLResourceStorageModeShared];
  [x release];
  [x release];
}
CASE(used_after_release) {
  Rig rig;
  id<MTLBuffer> x = [rig.device newBufferWithLength:16 options:MTLResourceStorageModeShared];
  [x release];
  EXPECT(x.length);
}
CASE(unknown_selector) {
  Rig rig;
  [(id<MTLLibrary>)rig.queue functionNames];
}
