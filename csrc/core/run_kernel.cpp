#include "core/run_kernel.h"

#include <string>
#include <vector>

#include "core/error.h"
#include "core/kernel_check.h"
#include "step_fields.h"

namespace butter {
namespace {

void check_range(const KernelInfo& info, const Slice& s) {
  const size_t size = s.buffer->size();
  if (s.offset <= size && s.bytes <= size - s.offset) return;
  throw Error(Code::kShape, std::string(info.symbol),
              concat("range is outside its buffer: got offset ", s.offset, " and ", s.bytes,
                     " bytes, need at most ", size));
}

void check_step(const KernelInfo& info, const std::optional<Slice>& step) {
  if (!info.uses_step) return;
  const size_t need = step::kHeaderWords * sizeof(uint32_t);
  if (!step) throw Error(Code::kShape, std::string(info.symbol), "the kernel needs a step block.");
  check_range(info, *step);
  if (step->bytes < need || step->offset % sizeof(uint32_t) != 0 || !step->buffer->writable()) {
    throw Error(Code::kShape, std::string(info.symbol),
                concat("the step block must be writable, aligned to 4 and hold ", need,
                       " bytes: got ", step->bytes, " at offset ", step->offset));
  }
}

}  // namespace

void run_kernel(Device& device, const KernelInfo& info, std::span<const Slice> slices,
                std::span<const uint32_t> consts, std::span<const uint32_t> dims,
                const std::optional<Slice>& step) {
  std::vector<BoundTensor> bound;
  for (const Slice& s : slices) {
    check_range(info, s);
    bound.push_back({s.buffer.get(), s.offset, s.bytes, std::nullopt, s.buffer->writable()});
  }
  const Grid grid = check_dispatch(info, bound, consts.size(), dims, device.info().warp);
  check_step(info, step);
  std::vector<uint32_t> scalars(consts.begin(), consts.end());
  scalars.insert(scalars.end(), dims.begin(), dims.end());
  const std::unique_ptr<Commands> commands = device.begin();
  commands->dispatch(device.pipeline(info, consts),
                     {slices, scalars, grid, step.value_or(Slice{})});
  commands->submit()->wait();
}

}  // namespace butter
