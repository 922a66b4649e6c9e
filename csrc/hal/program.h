// A recorded and planned program, as plain data that every back end can encode.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hal/buffer.h"
#include "hal/commands.h"
#include "hal/manifest.h"

namespace butter {

enum class DispatchMode { kEager, kArgumentBuffers, kIcb };

/// A dim whose value is read from a word of the step block at each step.
struct DynamicDim {
  uint32_t dim;
  uint32_t word;
};

struct Binding {
  enum class Kind : uint8_t { kPool, kBuffer, kTokens };
  Kind kind;
  DType dtype;
  uint32_t buffer;  // index in Plan::buffers, for kBuffer
  size_t offset;    // bytes from the start of the pool, the buffer or the token ids
  size_t bytes;
};

struct Dispatch {
  const KernelInfo* kernel;
  std::vector<Binding> bindings;
  std::vector<uint32_t> scalars;  // consts, then dims with the maximum of dynamic ones
  std::vector<DynamicDim> dynamic;
  Grid grid;  // at the recorded dims
  uint32_t layer;
  uint32_t block;  // whose step block it reads and writes
  uint32_t phase;  // dispatches of one phase may overlap

  std::span<const uint32_t> consts() const {
    return std::span(scalars).first(kernel->consts.size());
  }
  std::span<const uint32_t> dims() const { return std::span(scalars).last(kernel->dims.size()); }
};

/// A step word that must not exceed what the program was recorded for.
struct StepLimit {
  uint32_t block;
  uint32_t word;
  uint32_t maximum;
};

struct KeptTensor {
  uint32_t id;
  Binding binding;
};

struct Plan {
  std::vector<Dispatch> dispatches;  // ordered by phase
  std::vector<Buffer> buffers;
  std::vector<KeptTensor> kept;
  std::vector<StepLimit> limits;
  size_t pool_bytes = 0;
  uint32_t phases = 0;
  uint32_t layers = 1;
  uint32_t blocks = 1;       // step blocks of each step: one per sequence
  uint32_t max_rows = 1;     // of each block
  uint32_t token_limit = 0;  // token ids must be below it; 0: not checked
};

/// The memory that a plan runs in.
struct PlanMemory {
  Buffer pool;
  std::vector<Slice> steps;  // the ring of step blocks: header words, then token ids
  uint32_t blocks = 1;       // of each slot

  const Slice& step(uint32_t slot, uint32_t block) const { return steps[slot * blocks + block]; }
};

/// Submits a plan, one step at a time, in one dispatch mode.
class Encoder {
 public:
  virtual ~Encoder() = default;
  /// Encodes and submits the step whose blocks were written to memory.step(slot, …).
  /// The work that used this slot before must have ended.
  virtual std::shared_ptr<Completion> submit(uint32_t slot) = 0;
};

}  // namespace butter
