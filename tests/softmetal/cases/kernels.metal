// Kernels of the cases, in the shape that Iron emits.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant float scale_factor [[function_constant(0)]];
constant bool add_one [[function_constant(1)]];

kernel void scale(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    constant uint* dims [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i < dims[0]) out[i] = x[i] * scale_factor;
}

struct scale_args {
  device const float* x [[id(0)]];
  device float* out [[id(1)]];
  constant uint* dims [[id(2)]];
};

kernel void scale__table(
    constant scale_args& args [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  if (i < args.dims[0]) args.out[i] = args.x[i] * scale_factor;
}

kernel void rms_norm(
    device const float* x [[buffer(0)]],
    device const float* w [[buffer(1)]],
    device float* out [[buffer(2)]],
    constant uint* dims [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]],
    uint tid [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint warp [[simdgroup_index_in_threadgroup]]) {
  threadgroup float scratch[8];
  const uint n = dims[0];
  float total = 0.0f;
  for (uint i = tid; i < n; i += 256u) total = fma(x[row * n + i], x[row * n + i], total);
  total = simd_sum(total);
  if (lane == 0u) scratch[warp] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  total = simd_sum(lane < 8u ? scratch[lane] : 0.0f);
  const float r = precise::rsqrt(total / float(n) + 1e-5f);
  for (uint i = tid; i < n; i += 256u) {
    out[row * n + i] = x[row * n + i] * r * w[i] + (add_one ? 1.0f : 0.0f);
  }
}

// C[m,n] = A[m,k] B[k,n] in half; one simdgroup for 8 x 8.
kernel void matmul(
    device const half* a [[buffer(0)]],
    device const half* b [[buffer(1)]],
    device float* c [[buffer(2)]],
    constant uint* dims [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]]) {
  const uint n = dims[1], k = dims[2];
  simdgroup_float8x8 total = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint i = 0; i < k; i += 8u) {
    simdgroup_half8x8 left, right;
    simdgroup_load(left, a + group.y * 8u * k + i, k);
    simdgroup_load(right, b + i * n + group.x * 8u, n);
    simdgroup_multiply_accumulate(total, left, right, total);
  }
  simdgroup_store(total, c + group.y * 8u * n + group.x * 8u, n);
}

kernel void builtins(
    device atomic_uint* count [[buffer(0)]],
    device float4* out [[buffer(1)]],
    device bfloat* halved [[buffer(2)]],
    uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  float4 v = float4(float2(1.0f, 2.0f), simd_shuffle_xor(float(lane), 1), simd_shuffle_down(float(lane), 4));
  v.xy = v.yx * 2.0f;
  const half4 h = half4(v);
  v += float4(h.wzyx);
  out[i] = v;
  halved[i] = bfloat(float(halved[i]) * 3.0f + as_type<float>(0x3f800000u));
  if (simd_max(lane) != 31u || !simd_any(lane == 3u)) {
    atomic_store_explicit(count, 0u, memory_order_relaxed);
  }
}

kernel void reverse_group(
    device uint* x [[buffer(0)]],
    threadgroup uint* scratch [[threadgroup(0)]],
    uint tid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  scratch[tid] = x[tid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  x[tid] = scratch[threads - 1u - tid];
}

// What must be caught.
kernel void reverse_without_barrier(
    device uint* x [[buffer(0)]],
    threadgroup uint* scratch [[threadgroup(0)]],
    uint tid [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  scratch[tid] = x[tid];
  x[tid] = scratch[threads - 1u - tid];
}

kernel void neighbour_after_sum(device uint* x [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup uint scratch[64];
  scratch[tid] = tid;
  const uint total = simd_sum(x[tid]);
  x[tid] = total + scratch[tid ^ 1u];
}

kernel void neighbour_after_barrier(device uint* x [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup uint scratch[64];
  scratch[tid] = tid;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  x[tid] = scratch[tid ^ 1u];
}

kernel void divergent_sum(
    device uint* x [[buffer(0)]],
    uint tid [[thread_index_in_threadgroup]]) {
  if (tid % 2u == 0u) x[tid] = simd_sum(x[tid]);
}

kernel void divergent_barrier(
    device uint* x [[buffer(0)]],
    uint tid [[thread_index_in_threadgroup]]) {
  if (tid < 32u) threadgroup_barrier(mem_flags::mem_threadgroup);
  x[tid] = tid;
}

kernel void reads_old_shared(
    device uint* x [[buffer(0)]],
    uint tid [[thread_index_in_threadgroup]]) {
  threadgroup uint scratch[32];
  x[tid] = scratch[tid];
}

kernel void large_shared(device uint* x [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  threadgroup uint scratch[8200];
  scratch[tid] = tid;
  x[tid] = scratch[tid];
}

kernel void clears_too_much(device uint* x [[buffer(0)]], uint tid [[thread_index_in_threadgroup]]) {
  if (tid == 0u) {
    for (uint i = 0; i < 65u; ++i) x[i] = 0u;
  }
}

kernel void off_by_one(
    device const float* x [[buffer(0)]],
    device float* out [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = x[i + 1u];
}
