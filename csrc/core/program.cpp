#include "core/program.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/planner.h"
#include "step_fields.h"

namespace butter {

namespace {

constexpr uint32_t kMaxBlocks = 1024;

}  // namespace

Program::Program(std::shared_ptr<Device> device, uint32_t max_rows, uint32_t blocks)
    : device_(std::move(device)), max_rows_(max_rows), blocks_(blocks) {
  if (max_rows == 0 || max_rows > (1u << 20)) {
    throw Error(Code::kConfig, "program",
                concat("max_rows is out of range: got ", max_rows, ", need 1..", 1u << 20));
  }
  if (blocks == 0 || blocks > kMaxBlocks) {
    throw Error(Code::kConfig, "program",
                concat("blocks is out of range: got ", blocks, ", need 1..", kMaxBlocks));
  }
}

const Tensor& Program::tensor(Id id) const {
  if (id < tensors_.size()) return tensors_[id];
  throw Error(
      Code::kConfig, "program",
      concat("unknown tensor: got ", id, ", need an id of this program below ", tensors_.size()));
}

Program::Id Program::add(const Tensor& tensor) {
  tensors_.push_back(tensor);
  return Id(tensors_.size() - 1);
}

Program::Id Program::activation(size_t bytes, DType dtype) {
  activations_.push_back(bytes);
  written_.push_back(false);
  return add({Binding::Kind::kPool, uint32_t(activations_.size() - 1), 0, bytes, dtype});
}

Program::Id Program::buffer(const Slice& slice, DType dtype) {
  const size_t size = slice.buffer->size();
  if (slice.offset > size || slice.bytes > size - slice.offset) {
    throw Error(Code::kShape, "program",
                concat("range is outside its buffer: got offset ", slice.offset, " and ",
                       slice.bytes, " bytes, need at most ", size));
  }
  const auto found = std::ranges::find(buffers_, slice.buffer);
  const uint32_t index = uint32_t(found - buffers_.begin());
  if (found == buffers_.end()) buffers_.push_back(slice.buffer);
  return add({Binding::Kind::kBuffer, index, slice.offset, slice.bytes, dtype});
}

Program::Id Program::step_tokens() {
  return add({Binding::Kind::kTokens, 0, 0, max_rows_ * sizeof(int32_t), DType::kI32});
}

Program::Id Program::view(Id id, size_t offset, size_t bytes, DType dtype) {
  Tensor part = tensor(id);
  if (offset > part.bytes || bytes > part.bytes - offset) {
    throw Error(Code::kShape, "program",
                concat("view is outside its tensor: got offset ", offset, " and ", bytes,
                       " bytes, need at most ", part.bytes));
  }
  part.offset += offset;
  part.bytes = bytes;
  part.dtype = dtype;
  return add(part);
}

void Program::keep(Id id) {
  if (tensor(id).kind != Binding::Kind::kPool) {
    throw Error(Code::kConfig, "program", "only an activation can be kept; buffers always are.");
  }
  kept_.push_back(id);
}

void Program::layer(uint32_t index) { layer_ = index; }

void Program::block(uint32_t index) {
  if (index >= blocks_) {
    throw Error(Code::kConfig, "program",
                concat("unknown step block: got ", index, ", need below ", blocks_));
  }
  block_ = index;
}

void Program::limit(uint32_t word, uint32_t maximum) {
  if (word >= step::kHeaderWords) {
    throw Error(Code::kConfig, "program",
                concat("unknown step word: got ", word, ", need below ", step::kHeaderWords));
  }
  limits_.push_back({block_, word, maximum});
}

void Program::limit_tokens(uint32_t count) { token_limit_ = count; }

void Program::check_written(const KernelInfo& info, std::span<const Id> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors_[tensors[i]];
    if (t.kind != Binding::Kind::kPool) continue;
    if (info.params[i].kind != ParamKind::kOut && !written_[t.resource]) {
      throw Error(Code::kShape, std::string(info.symbol),
                  concat("input '", info.params[i].name,
                         "' reads an activation that no earlier "
                         "dispatch has written. Record its producer first."));
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors_[tensors[i]];
    if (t.kind == Binding::Kind::kPool && info.params[i].kind != ParamKind::kIn) {
      written_[t.resource] = true;
    }
  }
}

void Program::dispatch(const KernelInfo& info, std::span<const Id> tensors,
                       std::span<const uint32_t> consts, std::span<const uint32_t> dims,
                       std::span<const DynamicDim> dynamic) {
  Dispatch d{&info, {}, {}, {dynamic.begin(), dynamic.end()}, {}, layer_, block_, 0};
  std::vector<BoundTensor> bound;
  for (const Id id : tensors) {
    const Tensor& t = tensor(id);
    // Any pointer that differs per resource will do; nothing dereferences it.
    const void* resource = t.kind == Binding::Kind::kPool ? &activations_[t.resource]
                           : t.kind == Binding::Kind::kBuffer
                               ? (const void*)buffers_[t.resource].get()
                               : (const void*)this;
    const bool writable = t.kind == Binding::Kind::kPool ||
                          (t.kind == Binding::Kind::kBuffer && buffers_[t.resource]->writable());
    bound.push_back({resource, t.offset, t.bytes, t.dtype, writable});
    d.bindings.push_back({t.kind, t.dtype, t.resource, t.offset, t.bytes});
  }
  for (const DynamicDim& dim : dynamic) {
    if (dim.dim >= dims.size() || dim.word >= step::kHeaderWords) {
      throw Error(
          Code::kShape, std::string(info.symbol),
          concat("dynamic dim is unknown: got dim ", dim.dim, " from step word ", dim.word,
                 ", need a dim below ", dims.size(), " and a word below ", step::kHeaderWords));
    }
    limits_.push_back({block_, dim.word, dims[dim.dim]});
  }
  d.grid = check_dispatch(info, bound, consts.size(), dims, device_->info().warp);
  device_->pipeline(info, consts);  // a kernel this device lacks is refused here
  check_written(info, tensors);
  d.scalars.assign(consts.begin(), consts.end());
  d.scalars.insert(d.scalars.end(), dims.begin(), dims.end());
  dispatches_.push_back(std::move(d));
}

Plan Program::finish() {
  Plan plan;
  plan.dispatches = std::exchange(dispatches_, {});
  plan.buffers = std::exchange(buffers_, {});
  plan.limits = merge_limits(std::exchange(limits_, {}));
  plan.blocks = blocks_;
  plan.max_rows = max_rows_;
  plan.token_limit = token_limit_;
  for (const Id id : std::exchange(kept_, {})) {
    const Tensor& t = tensors_[id];
    plan.kept.push_back({id, {t.kind, t.dtype, t.resource, t.offset, t.bytes}});
  }
  plan_phases(plan);
  plan_pool(plan, activations_);
  for (const Dispatch& d : plan.dispatches) plan.layers = std::max(plan.layers, d.layer + 1);
  tensors_.clear();
  activations_.clear();
  written_.clear();
  return plan;
}

}  // namespace butter
