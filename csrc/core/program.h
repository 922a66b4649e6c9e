// Records a forward pass: kernel dispatches over named tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel_check.h"
#include "hal/device.h"
#include "hal/program.h"

namespace butter {

/// A recorded tensor: a range of an activation, of a buffer, or the token ids of the step.
struct Tensor {
  Binding::Kind kind;
  uint32_t resource;  // activation or buffer index
  size_t offset;
  size_t bytes;
  DType dtype;
};

/// Every call checks its arguments at once and throws ShapeError, KernelError or ConfigError.
/// Not to be shared between threads.
class Program {
 public:
  using Id = uint32_t;

  /// A program over several sequences has a step block of max_rows rows for each.
  Program(std::shared_ptr<Device> device, uint32_t max_rows, uint32_t blocks = 1);

  /// A tensor that lives from its first write to its last use in a step.
  Id activation(size_t bytes, DType dtype);
  /// Weights, caches, and other state that outlives the step. Keeps the memory alive.
  Id buffer(const Slice& slice, DType dtype);
  /// The token ids of the dispatch's step block: i32 [max_rows].
  Id step_tokens();
  /// A range of another tensor, offset in bytes from its start.
  Id view(Id id, size_t offset, size_t bytes, DType dtype);
  /// Makes an activation readable after the step has run.
  void keep(Id id);
  /// Dispatches recorded from here on belong to this layer.
  void layer(uint32_t index);
  /// Dispatches and limits recorded from here on are about this step block.
  void block(uint32_t index);
  /// A step whose word exceeds the maximum is refused when submitted.
  void limit(uint32_t word, uint32_t maximum);
  /// Token ids of a step must be below count.
  void limit_tokens(uint32_t count);

  void dispatch(const KernelInfo& info, std::span<const Id> tensors,
                std::span<const uint32_t> consts, std::span<const uint32_t> dims,
                std::span<const DynamicDim> dynamic);

  /// Plans memory and phases. The program is empty afterwards.
  Plan finish();

  const std::shared_ptr<Device>& device() const { return device_; }

 private:
  const Tensor& tensor(Id id) const;
  Id add(const Tensor& tensor);
  void check_written(const KernelInfo& info, std::span<const Id> tensors);

  std::shared_ptr<Device> device_;
  uint32_t max_rows_;
  uint32_t blocks_;
  uint32_t layer_ = 0;
  uint32_t block_ = 0;
  uint32_t token_limit_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<size_t> activations_;  // bytes of each
  std::vector<bool> written_;        // by activation
  std::vector<Buffer> buffers_;
  std::vector<Id> kept_;
  std::vector<StepLimit> limits_;
  std::vector<Dispatch> dispatches_;  // bindings hold the activation index in `buffer`
};

}  // namespace butter
