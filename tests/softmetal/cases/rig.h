// What the cases share: a case is a function with a name; main.mm runs one.
#pragma once

#import <Metal/Metal.h>

#include <functional>
#include <string>
#include <vector>

#include "../metal/softmetal.h"

struct Case {
  Case(const char* name, void (*run)());
};
#define CASE(name)                                  \
  static void run_##name();                         \
  static const Case case_##name(#name, run_##name); \
  static void run_##name()

/// Prints what failed and exits with 3.
void expect(bool condition, const char* what);
#define EXPECT(condition) expect(condition, #condition)

extern std::string library_path;

/// A device, a queue and the library. Everything that make_ gives is released at the end.
struct Rig {
  Rig();
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  id<MTLBuffer> buffer(size_t bytes, MTLResourceOptions options = MTLResourceStorageModeShared);
  id<MTLBuffer> floats(std::vector<float> values);
  id<MTLBuffer> words(std::vector<uint32_t> values);
  id<MTLComputePipelineState> pipeline(const char* name, bool indirect = true);
  template <class T>
  T own(T object) {
    owned_.push_back(object);
    return object;
  }

  id<MTLDevice> device;
  id<MTLCommandQueue> queue;
  id<MTLLibrary> library;

 private:
  std::vector<id> owned_;
};

/// Values of all constants.
MTLFunctionConstantValues* constants(float scale_factor = 2.0f, bool add_one = false);

float* data(id<MTLBuffer> buffer);

/// Encodes one compute pass, commits and waits.
void compute(Rig& rig, MTLDispatchType type,
             const std::function<void(id<MTLComputeCommandEncoder>)>& encode);

/// out = x * 2, by `scale`, bound or through an argument buffer.
void encode_scale(Rig& rig, id<MTLComputeCommandEncoder> encoder, id<MTLBuffer> x,
                  id<MTLBuffer> out, uint32_t n, size_t out_offset = 0);
