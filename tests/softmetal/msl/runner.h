// What a compiled .metal file, the software Metal and the runner agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct MslUint3 {
  uint32_t v[3];
};

constexpr uint32_t kMslBuffers = 31, kMslLanes = 32, kMslThreadgroupBytes = 32768;

/// One launch, as kernels see it.
struct MslDispatch {
  void* buffers[kMslBuffers];
  void* group_memory[8];
  MslUint3 grid, group_size, groups;
};

/// One GPU thread.
struct MslThread {
  MslUint3 in_grid, in_group, group;
  uint32_t index, lane, simdgroup;
};

enum class MslType : uint32_t {
  kBool,
  kChar,
  kUChar,
  kShort,
  kUShort,
  kInt,
  kUInt,
  kHalf,
  kFloat,
  kBFloat
};

/// A parameter with [[buffer(index)]].
struct MslBuffer {
  const char* name;
  uint32_t index, size, alignment;
  bool writes, is_table;
  bool is_array;  // of tables: only the kernel knows which of them it reads
};

/// A member of an argument buffer with [[id(id)]].
struct MslMember {
  const char* name;
  uint32_t buffer, id, offset, size;
  bool is_pointer, writes;
};

struct MslKernel {
  const char* name;
  void (*entry)(const MslDispatch*, const MslThread*);
  const MslBuffer* buffers;
  uint32_t n_buffers;
  const MslMember* members;
  uint32_t n_members;
  const uint32_t* constants;  // of its unit, that must have a value
  uint32_t n_constants;
  uint32_t shared_bytes;  // of its threadgroup variables
};

/// A function constant is a variable of the library, set before each launch.
struct MslConstant {
  uint32_t index;
  const char* name;
  MslType type;
  uint32_t size;
  void* value;
  bool* is_defined;
};

/// One file.
struct MslUnit {
  const MslKernel* kernels;
  uint32_t n_kernels;
  const MslConstant* constants;
  uint32_t n_constants;
};

/// A library exports `extern "C" MslLibrary msl_library()`.
struct MslLibrary {
  const MslUnit* const* begin;
  const MslUnit* const* end;
  const char* image_begin;  // of its own data, which kernels may read
  const char* image_end;
};

/// Memory that a launch may touch, and afterwards the part that it has touched.
struct MslSpan {
  uintptr_t begin, end;
  bool may_write;
  const char* name;  // "buffer(2) out"
  uintptr_t read_begin = UINTPTR_MAX, read_end = 0, write_begin = UINTPTR_MAX, write_end = 0;
};

struct MslLaunch {
  const MslKernel* kernel;
  MslDispatch dispatch;
  std::vector<size_t> threadgroup_bytes;
  std::vector<MslSpan> spans;  // sorted by begin, disjoint
  uintptr_t image_begin, image_end;
};

/// Runs all threads of a launch. Threads outside of the grid are left out. Any access outside of
/// the spans, divergent simdgroup operation or race in threadgroup memory is fatal.
void msl_run(MslLaunch& launch);

/// Called from kernels.
enum MslScope { kMslSimd = 1, kMslThreadgroup = 2, kMslSimdBarrier = 3 };
extern "C" {
void msl_sync(int scope, const void* site);
char* msl_slots(int phase);  // 32 slots of 32 bytes for the simdgroup of the running lane
char* msl_shared(size_t bytes);
unsigned msl_lane(void);
unsigned msl_next_phase(void);
unsigned msl_active(void);  // lanes of the running simdgroup
void msl_access(void* at, size_t bytes, bool writes);
}
