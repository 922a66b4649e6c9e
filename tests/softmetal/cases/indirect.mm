// Indirect command buffers: two dependent dispatches, and each way to get it wrong.
#include <cstdlib>

#import "rig.h"

namespace {

struct Options {
  bool barrier = true, use_resources = true, touches_pipeline = true, indirect_pipeline = true;
  bool inherits_buffers = false;
  NSUInteger bind_count = 3;
  MTLIndirectCommandType type = MTLIndirectCommandTypeConcurrentDispatch;
};

struct Chain {
  explicit Chain(Options o = {}) : options(o) {
    MTLIndirectCommandBufferDescriptor* d =
        [[[MTLIndirectCommandBufferDescriptor alloc] init] autorelease];
    d.commandTypes = options.type;
    d.inheritPipelineState = NO;
    d.inheritBuffers = options.inherits_buffers;
    d.maxKernelBufferBindCount = options.bind_count;
    commands = rig.own([rig.device newIndirectCommandBufferWithDescriptor:d
                                                          maxCommandCount:2
                                                                  options:0]);
    pipeline = rig.pipeline("scale", options.indirect_pipeline);
    for (int i = 0; i < 2; ++i) record(i, i ? y : x, i ? z : y);
  }

  void record(int i, id<MTLBuffer> from, id<MTLBuffer> to) {
    id<MTLIndirectComputeCommand> c = [commands indirectComputeCommandAtIndex:i];
    [c setComputePipelineState:pipeline];
    [c setKernelBuffer:from offset:0 atIndex:0];
    [c setKernelBuffer:to offset:0 atIndex:1];
    [c setKernelBuffer:dims offset:0 atIndex:2];
    [c concurrentDispatchThreadgroups:MTLSizeMake(1, 1, 1)
                threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
    if (i && options.barrier) [c setBarrier];
  }

  id<MTLCommandBuffer> commit() {
    id<MTLCommandBuffer> buffer = [rig.queue commandBuffer];
    id<MTLComputeCommandEncoder> e =
        [buffer computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
    if (options.use_resources) {
      id<MTLResource> all[] = {x, y, z, dims};
      [e useResources:all count:4 usage:MTLResourceUsageRead | MTLResourceUsageWrite];
    }
    if (options.touches_pipeline) {
      [e setComputePipelineState:pipeline];
      [e dispatchThreadgroups:MTLSizeMake(0, 0, 0) threadsPerThreadgroup:MTLSizeMake(0, 0, 0)];
    }
    [e executeCommandsInBuffer:commands withRange:NSMakeRange(0, 2)];
    [e endEncoding];
    [buffer commit];
    return buffer;
  }

  const Options options;
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 2, 3, 4}), y = rig.buffer(16), z = rig.buffer(16),
                dims = rig.words({4});
  id<MTLComputePipelineState> pipeline;
  id<MTLIndirectCommandBuffer> commands;
};

void run(Options options) {
  Chain chain(options);
  [chain.commit() waitUntilCompleted];
}

}  // namespace

CASE(indirect_chain) {
  Chain chain;
  for (int i = 0; i < 3; ++i) [chain.commit() waitUntilCompleted];
  for (int i = 0; i < 4; ++i) EXPECT(data(chain.z)[i] == 4 * data(chain.x)[i]);
  EXPECT(softmetal_call_count("compute executeCommandsInBuffer:withRange:") == 3);
  EXPECT(softmetal_call_count("indirect") == 11);
}
CASE(indirect_in_flight) {
  Chain chain;
  id<MTLCommandBuffer> pending[3];
  for (auto& p : pending) p = chain.commit();
  for (auto& p : pending) [p waitUntilCompleted];
  EXPECT(data(chain.z)[3] == 16);
}

CASE(indirect_without_barrier) { run({.barrier = false}); }
CASE(indirect_planted_without_barrier) {
  softmetal_plant("skip_barrier");
  run({});
}
CASE(indirect_not_resident) { run({.use_resources = false}); }
CASE(indirect_planted_not_resident) {
  softmetal_plant("skip_use_resource:3");
  run({});
}
CASE(indirect_planted_shifted) {
  softmetal_plant("shift_binding:5");
  run({.bind_count = 4});
}
CASE(indirect_untouched_pipeline) { run({.touches_pipeline = false}); }
CASE(indirect_plain_pipeline) { run({.indirect_pipeline = false}); }
CASE(indirect_inherits_buffers) { run({.inherits_buffers = true}); }
CASE(indirect_bind_count) { run({.bind_count = 2}); }
CASE(indirect_wrong_type) { run({.type = MTLIndirectCommandTypeConcurrentDispatchThreads}); }
CASE(indirect_stale_buffer) {
  Chain chain;
  id<MTLBuffer> stale = [chain.rig.device newBufferWithLength:16
                                                      options:MTLResourceStorageModeShared];
  chain.record(1, chain.y, stale);
  [stale release];
  [chain.commit() waitUntilCompleted];
}
CASE(indirect_changed_in_flight) {
  setenv("SOFTMETAL_DELAY_US", "200000", 1);
  Chain chain;
  chain.commit();
  chain.record(1, chain.x, chain.z);
}
CASE(indirect_past_end) {
  Chain chain;
  [chain.commands indirectComputeCommandAtIndex:2];
}
