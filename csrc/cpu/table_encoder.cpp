#include "cpu/table_encoder.h"

#include <algorithm>
#include <utility>

#include "core/cost.h"
#include "core/eager_encoder.h"
#include "core/kernel_check.h"
#include "cpu/chunking.h"
#include "cpu/commands.h"
#include "cpu/lookahead.h"
#include "step_fields.h"

namespace butter::cpu {

TableEncoder::TableEncoder(Device& device, Pool& pool, const Plan& plan, const PlanMemory& memory,
                           DispatchMode mode)
    : device_(device), pool_(pool), plan_(plan), memory_(memory), mode_(mode) {
  size_t buffers = 0, scalars = 0;
  for (uint32_t i = 0; i < plan.dispatches.size(); ++i) {
    const Dispatch& d = plan.dispatches[i];
    pipelines_.push_back(static_cast<const CpuPipeline*>(&device.pipeline(*d.kernel, d.consts())));
    first_buffer_.push_back(buffers);
    first_scalar_.push_back(scalars);
    buffers += d.bindings.size() + d.kernel->uses_step;
    scalars += d.scalars.size();
    for (const DynamicDim& dim : d.dynamic) {
      const Value value{d.block, dim.word};
      if (std::ranges::find(dynamic_words_, value) == dynamic_words_.end()) {
        dynamic_words_.push_back(value);
      }
    }
    if (mode == DispatchMode::kIcb && d.dynamic.empty()) continue;
    rewritten_.push_back(i);
    if (recounted_.empty() || recounted_.back() != d.phase) recounted_.push_back(d.phase);
  }
  for (uint32_t slot = 0; slot < kRing; ++slot) {
    Stream& stream = streams_[slot];
    stream.work = std::make_shared<Submission>();
    stream.buffers.resize(buffers);
    stream.scalars.reserve(scalars);
    resolve_buffers(stream, slot);
    lay_out(stream);
  }
}

void TableEncoder::resolve_buffers(Stream& stream, uint32_t slot) {
  size_t at = 0;
  for (const Dispatch& d : plan_.dispatches) {
    const Slice& step = memory_.step(slot, d.block);
    for (const Binding& b : d.bindings) {
      stream.buffers[at++] = address(resolve(plan_, memory_, step, b));
    }
    if (d.kernel->uses_step) stream.buffers[at++] = address(step);
  }
}

void TableEncoder::lay_out(Stream& stream) {
  const DeviceInfo& info = device_.info();
  for (size_t i = 0; i < plan_.dispatches.size(); ++i) {
    const Dispatch& d = plan_.dispatches[i];
    stream.scalars.insert(stream.scalars.end(), d.scalars.begin(), d.scalars.end());
    const uint32_t groups = d.grid[0] * d.grid[1] * d.grid[2];
    stream.work->tasks.push_back(
        {pipelines_[i]->fn,
         {stream.buffers.data() + first_buffer_[i],
          stream.scalars.data() + first_scalar_[i],
          {d.grid[0], d.grid[1], d.grid[2]}},
         groups,
         chunk_count(*d.kernel, d.dims(), groups, info.warp, info.threads)});
    if (stream.work->phases.size() == d.phase) {
      stream.work->phases.push_back({uint32_t(i), uint32_t(i), 0});
    }
    stream.work->phases[d.phase].end = uint32_t(i + 1);
  }
  for (Phase& phase : stream.work->phases) count_chunks(*stream.work, phase);
  plan_lookahead(*stream.work, plan_, info.threads, info.warp);
}

void TableEncoder::write_step_pointers(Stream& stream, size_t call, const Slice& step) {
  const Dispatch& d = plan_.dispatches[call];
  void** buffers = stream.buffers.data() + first_buffer_[call];
  for (size_t i = 0; i < d.bindings.size(); ++i) {
    if (d.bindings[i].kind == Binding::Kind::kTokens) {
      buffers[i] = address(resolve(plan_, memory_, step, d.bindings[i]));
    }
  }
  if (d.kernel->uses_step) buffers[d.bindings.size()] = address(step);
}

void TableEncoder::write_call(Stream& stream, size_t call, const Slice& step) {
  const Dispatch& d = plan_.dispatches[call];
  const DeviceInfo& info = device_.info();
  const auto* words = static_cast<const uint32_t*>(address(step));
  const std::span dims(stream.scalars.data() + first_scalar_[call] + d.kernel->consts.size(),
                       d.kernel->dims.size());
  step_dims(d, {words, step::kHeaderWords}, dims);
  const Grid grid = evaluate_grid(*d.kernel, dims, info.warp);
  Task& task = stream.work->tasks[call];
  for (size_t axis = 0; axis < 3; ++axis) task.args.grid[axis] = grid[axis];
  task.groups = grid[0] * grid[1] * grid[2];
  task.chunks = chunk_count(*d.kernel, dims, task.groups, info.warp, info.threads);
}

bool TableEncoder::update_values(Stream& stream, uint32_t slot) {
  const bool first = stream.values.size() != dynamic_words_.size();
  stream.values.resize(dynamic_words_.size());
  changed_.assign(plan_.blocks, first);
  bool any = first;
  for (size_t i = 0; i < dynamic_words_.size(); ++i) {
    const auto [block, word] = dynamic_words_[i];
    const auto* words = static_cast<const uint32_t*>(address(memory_.step(slot, block)));
    if (std::exchange(stream.values[i], words[word]) != words[word]) changed_[block] = any = true;
  }
  return any;
}

std::shared_ptr<Completion> TableEncoder::submit(uint32_t slot) {
  Stream& stream = streams_[slot];
  if (!update_values(stream, slot) && mode_ == DispatchMode::kIcb) {
    pool_.submit(stream.work);
    return stream.work;
  }
  for (const uint32_t call : rewritten_) {
    const uint32_t block = plan_.dispatches[call].block;
    if (mode_ == DispatchMode::kIcb && !changed_[block]) continue;
    const Slice& step = memory_.step(slot, block);
    // An indirect stream of this slot already points at this slot's step block.
    if (mode_ == DispatchMode::kArgumentBuffers) write_step_pointers(stream, call, step);
    write_call(stream, call, step);
  }
  for (const uint32_t phase : recounted_) count_chunks(*stream.work, stream.work->phases[phase]);
  pool_.submit(stream.work);
  return stream.work;
}

}  // namespace butter::cpu
