// Cases that compute: each way to dispatch, each builtin.
#include <cmath>

#import "rig.h"

CASE(bound_buffers) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 2, 3, 4}), out = rig.buffer(16);
  compute(rig, MTLDispatchTypeSerial,
          [&](id<MTLComputeCommandEncoder> e) { encode_scale(rig, e, x, out, 4); });
  for (int i = 0; i < 4; ++i) EXPECT(data(out)[i] == 2.0f * data(x)[i]);
  EXPECT(softmetal_call_count("compute") == 6);
  EXPECT(softmetal_call_count("compute setBuffer:offset:atIndex:") == 2);
}

CASE(argument_buffer) {
  Rig rig;
  id<MTLBuffer> x = rig.floats({1, 2, 3, 4}), out = rig.buffer(16), dims = rig.words({4});
  id<MTLFunction> function = rig.own([rig.library newFunctionWithName:@"scale__table"]);
  id<MTLArgumentEncoder> arguments = rig.own([function newArgumentEncoderWithBufferIndex:0]);
  id<MTLBuffer> table = rig.buffer(arguments.encodedLength);
  [arguments setArgumentBuffer:table offset:0];
  [arguments setBuffer:x offset:0 atIndex:0];
  [arguments setBuffer:out offset:0 atIndex:1];
  [arguments setBuffer:dims offset:0 atIndex:2];
  compute(rig, MTLDispatchTypeConcurrent, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("scale__table")];
    id<MTLResource> read[] = {x, dims};
    [e useResources:read count:2 usage:MTLResourceUsageRead];
    [e useResource:out usage:MTLResourceUsageWrite];
    [e setBuffer:table offset:0 atIndex:0];
    [e dispatchThreads:MTLSizeMake(4, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
  });
  for (int i = 0; i < 4; ++i) EXPECT(data(out)[i] == 2.0f * data(x)[i]);
}

CASE(group_reduction) {
  Rig rig;
  const uint32_t n = 700;
  std::vector<float> x(n), w(n);
  double squares = 0;
  for (uint32_t i = 0; i < n; ++i) {
    x[i] = std::sin(0.1f * i);
    w[i] = 0.5f + i % 7;
    squares += double(x[i]) * x[i];
  }
  id<MTLBuffer> bx = rig.floats(x), bw = rig.floats(w), out = rig.buffer(n * 4);
  compute(rig, MTLDispatchTypeSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("rms_norm")];
    [e setBuffer:bx offset:0 atIndex:0];
    [e setBuffer:bw offset:0 atIndex:1];
    [e setBuffer:out offset:0 atIndex:2];
    [e setBytes:&n length:4 atIndex:3];
    [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
  });
  const double r = 1 / std::sqrt(squares / n + 1e-5);
  for (uint32_t i = 0; i < n; ++i) EXPECT(std::fabs(data(out)[i] - x[i] * r * w[i]) < 1e-5);
}

CASE(matrices) {
  Rig rig;
  const uint32_t m = 16, n = 24, k = 40;
  std::vector<_Float16> a(m * k), b(k * n);
  for (uint32_t i = 0; i < a.size(); ++i) a[i] = _Float16((i % 13) * 0.25f - 1);
  for (uint32_t i = 0; i < b.size(); ++i) b[i] = _Float16((i % 7) * 0.5f - 1);
  const auto upload = [&](const std::vector<_Float16>& v) {
    return rig.own([rig.device newBufferWithBytes:v.data() length:v.size() * 2 options:0]);
  };
  id<MTLBuffer> ba = upload(a), bb = upload(b), c = rig.buffer(m * n * 4);
  compute(rig, MTLDispatchTypeSerial, [&](id<MTLComputeCommandEncoder> e) {
    const uint32_t dims[] = {m, n, k};
    [e setComputePipelineState:rig.pipeline("matmul")];
    [e setBuffer:ba offset:0 atIndex:0];
    [e setBuffer:bb offset:0 atIndex:1];
    [e setBuffer:c offset:0 atIndex:2];
    [e setBytes:dims length:sizeof dims atIndex:3];
    [e dispatchThreadgroups:MTLSizeMake(n / 8, m / 8, 1)
        threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
  });
  for (uint32_t i = 0; i < m; ++i) {
    for (uint32_t j = 0; j < n; ++j) {
      double want = 0;
      for (uint32_t l = 0; l < k; ++l) want += double(a[i * k + l]) * double(b[l * n + j]);
      EXPECT(std::fabs(data(c)[i * n + j] - want) < 1e-3);
    }
  }
}

CASE(builtins) {
  Rig rig;
  id<MTLBuffer> count = rig.words({0}), out = rig.buffer(64 * 16), halved = rig.buffer(128);
  compute(rig, MTLDispatchTypeSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("builtins")];
    [e setBuffer:count offset:0 atIndex:0];
    [e setBuffer:out offset:0 atIndex:1];
    [e setBuffer:halved offset:0 atIndex:2];
    [e dispatchThreads:MTLSizeMake(64, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
  });
  EXPECT(*static_cast<uint32_t*>(count.contents) == 64);
  const float* third = data(out) + 4 * 3;
  EXPECT(third[0] == 4 + 7);  // y * 2, plus lane 3 + 4
  EXPECT(third[2] == 2 + 2);
  EXPECT(static_cast<uint16_t*>(halved.contents)[5] == 0x3f80);
}

CASE(threadgroup_argument) {
  Rig rig;
  std::vector<uint32_t> values(64);
  for (uint32_t i = 0; i < 64; ++i) values[i] = i;
  id<MTLBuffer> x = rig.words(values);
  compute(rig, MTLDispatchTypeSerial, [&](id<MTLComputeCommandEncoder> e) {
    [e setComputePipelineState:rig.pipeline("reverse_group")];
    [e setBuffer:x offset:0 atIndex:0];
    [e setThreadgroupMemoryLength:256 atIndex:0];
    [e dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 1)];
  });
  for (uint32_t i = 0; i < 64; ++i) EXPECT(static_cast<uint32_t*>(x.contents)[i] == 63 - i);
}
