#include "core/eager_encoder.h"

#include "core/cost.h"
#include "step_fields.h"

namespace butter {

Slice resolve(const Plan& plan, const PlanMemory& memory, const Slice& step,
              const Binding& binding) {
  switch (binding.kind) {
    case Binding::Kind::kPool:
      return {memory.pool, binding.offset, binding.bytes};
    case Binding::Kind::kBuffer:
      return {plan.buffers[binding.buffer], binding.offset, binding.bytes};
    case Binding::Kind::kTokens:
      break;
  }
  const size_t header = step::kHeaderWords * sizeof(uint32_t);
  return {step.buffer, step.offset + header + binding.offset, binding.bytes};
}

EagerEncoder::EagerEncoder(Device& device, const Plan& plan, const PlanMemory& memory)
    : device_(device), plan_(plan), memory_(memory) {
  for (auto& commands : commands_) commands = device.begin();
}

std::shared_ptr<Completion> EagerEncoder::submit(uint32_t slot) {
  Commands& commands = *commands_[slot];
  uint32_t phase = 0;
  try {
    for (const Dispatch& d : plan_.dispatches) {
      if (d.phase != phase) commands.barrier();
      phase = d.phase;
      encode(commands, d, memory_.step(slot, d.block));
    }
    return commands.submit();
  } catch (...) {
    commands_[slot] = device_.begin();  // drops what was encoded so far
    throw;
  }
}

std::vector<uint64_t> EagerEncoder::profile(uint32_t slot) {
  std::vector<uint64_t> times;
  const std::unique_ptr<Commands> commands = device_.begin();
  for (const Dispatch& d : plan_.dispatches) {
    encode(*commands, d, memory_.step(slot, d.block));
    const std::shared_ptr<Completion> work = commands->submit();
    work->wait();
    times.push_back(work->device_ns());
  }
  return times;
}

void EagerEncoder::encode(Commands& commands, const Dispatch& d, const Slice& step) {
  const KernelInfo& info = find_kernel(d.kernel->symbol);
  const Pipeline& pipeline = device_.pipeline(info, d.consts());
  slices_.clear();
  bound_.clear();
  for (const Binding& b : d.bindings) {
    const Slice& s = slices_.emplace_back(resolve(plan_, memory_, step, b));
    bound_.push_back({s.buffer.get(), s.offset, s.bytes, b.dtype, s.buffer->writable()});
  }
  const auto* words = reinterpret_cast<const uint32_t*>(step.buffer->host() + step.offset);
  scalars_ = d.scalars;
  const std::span dims = std::span(scalars_).subspan(d.consts().size());
  step_dims(d, {words, step::kHeaderWords}, dims);
  const Grid grid = check_dispatch(info, bound_, d.consts().size(), dims, device_.info().warp);
  commands.dispatch(pipeline, {slices_, scalars_, grid, step});
}

}  // namespace butter
