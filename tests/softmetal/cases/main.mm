// cases LIBRARY NAME: runs one case; "ok" and 0 if it went as it says.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#import "rig.h"

namespace {

std::map<std::string, void (*)()>& cases() {
  static std::map<std::string, void (*)()> all;
  return all;
}

}  // namespace

std::string library_path;

Case::Case(const char* name, void (*run)()) { cases()[name] = run; }

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::exit(3);
}

Rig::Rig() : device(MTLCreateSystemDefaultDevice()), queue([device newCommandQueue]) {
  NSError* error = nil;
  NSURL* url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:library_path.c_str()]];
  library = [device newLibraryWithURL:url error:&error];
  if (!library) std::fprintf(stderr, "%s\n", error.localizedDescription.UTF8String);
  EXPECT(library);
}

Rig::~Rig() {
  for (id object : owned_) [object release];
  [library release];
  [queue release];
  [device release];
}

id<MTLBuffer> Rig::buffer(size_t bytes, MTLResourceOptions options) {
  return own([device newBufferWithLength:bytes options:options]);
}
id<MTLBuffer> Rig::floats(std::vector<float> values) {
  return own([device newBufferWithBytes:values.data()
                                 length:values.size() * sizeof(float)
                                options:MTLResourceStorageModeShared]);
}
id<MTLBuffer> Rig::words(std::vector<uint32_t> values) {
  return own([device newBufferWithBytes:values.data()
                                 length:values.size() * sizeof(uint32_t)
                                options:MTLResourceStorageModeShared]);
}

id<MTLComputePipelineState> Rig::pipeline(const char* name, bool indirect) {
  NSError* error = nil;
  id<MTLFunction> function = [library newFunctionWithName:[NSString stringWithUTF8String:name]
                                           constantValues:constants()
                                                    error:&error];
  EXPECT(function);
  MTLComputePipelineDescriptor* d = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
  d.computeFunction = function;
  d.supportIndirectCommandBuffers = indirect;
  [function release];
  id<MTLComputePipelineState> state =
      [device newComputePipelineStateWithDescriptor:d
                                            options:MTLPipelineOptionNone
                                         reflection:nullptr
                                              error:&error];
  EXPECT(state);
  return own(state);
}

MTLFunctionConstantValues* constants(float scale_factor, bool add_one) {
  MTLFunctionConstantValues* values = [[[MTLFunctionConstantValues alloc] init] autorelease];
  [values setConstantValue:&scale_factor type:MTLDataTypeFloat withName:@"scale_factor"];
  [values setConstantValue:&add_one type:MTLDataTypeBool atIndex:1];
  return values;
}

float* data(id<MTLBuffer> buffer) { return static_cast<float*>(buffer.contents); }

void compute(Rig& rig, MTLDispatchType type,
             const std::function<void(id<MTLComputeCommandEncoder>)>& encode) {
  id<MTLCommandBuffer> commands = [rig.queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoderWithDispatchType:type];
  encode(encoder);
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  EXPECT(commands.status == MTLCommandBufferStatusCompleted);
}

void encode_scale(Rig& rig, id<MTLComputeCommandEncoder> encoder, id<MTLBuffer> x,
                  id<MTLBuffer> out, uint32_t n, size_t out_offset) {
  [encoder setComputePipelineState:rig.pipeline("scale")];
  [encoder setBuffer:x offset:0 atIndex:0];
  [encoder setBuffer:out offset:out_offset atIndex:1];
  [encoder setBytes:&n length:sizeof n atIndex:2];
  [encoder dispatchThreadgroups:MTLSizeMake((n + 31) / 32, 1, 1)
          threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
}

int main(int count, char** arguments) {
  if (count == 2 && !std::strcmp(arguments[1], "--list")) {
    for (const auto& [name, run] : cases()) std::puts(name.c_str());
    return 0;
  }
  if (count != 3 || !cases().count(arguments[2])) {
    std::fprintf(stderr, "usage: cases LIBRARY NAME | --list\n");
    return 2;
  }
  library_path = arguments[1];
  @autoreleasepool {
    cases()[arguments[2]]();
  }
  softmetal_settle();
  char report[512];
  softmetal_live_report(report, sizeof report);
  if (softmetal_live_objects() > 1) {
    std::fprintf(stderr, "left alive: %s\n", report);
    return 4;
  }
  std::puts("ok");
}
