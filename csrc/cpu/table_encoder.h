// The two dispatch modes that resolve arguments at load: argument tables and indirect streams.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/step_ring.h"
#include "cpu/pool.h"
#include "cpu/pso_cache.h"
#include "cpu/submission.h"
#include "hal/device.h"

namespace butter::cpu {

/// Pointers are resolved when the encoder is made, once for each slot of the step ring.
/// argument_buffers writes every call of every step anew: step pointers, dims and grid.
/// icb keeps the calls and patches those with a dynamic dim, in the steps that change its value.
class TableEncoder : public Encoder {
 public:
  /// The arguments outlive the encoder.
  TableEncoder(Device& device, Pool& pool, const Plan& plan, const PlanMemory& memory,
               DispatchMode mode);

  std::shared_ptr<Completion> submit(uint32_t slot) override;

 private:
  struct Stream {
    std::shared_ptr<Submission> work;
    std::vector<void*> buffers;
    std::vector<uint32_t> scalars;
    std::vector<uint32_t> values;  // of dynamic_words_, as the calls were last written
  };

  struct Value {
    uint32_t block, word;
    bool operator==(const Value&) const = default;
  };

  void resolve_buffers(Stream& stream, uint32_t slot);
  void lay_out(Stream& stream);
  void write_step_pointers(Stream& stream, size_t call, const Slice& step);
  bool update_values(Stream& stream, uint32_t slot);
  void write_call(Stream& stream, size_t call, const Slice& step);

  Device& device_;
  Pool& pool_;
  const Plan& plan_;
  const PlanMemory& memory_;
  const DispatchMode mode_;
  std::vector<const CpuPipeline*> pipelines_;
  std::vector<size_t> first_buffer_, first_scalar_;  // of each call
  std::vector<uint32_t> rewritten_;                  // calls that change per step
  std::vector<uint32_t> recounted_;                  // phases that hold one of them
  std::vector<Value> dynamic_words_;
  std::vector<bool> changed_;  // blocks whose values did, in the step that is being submitted
  std::array<Stream, kRing> streams_;
};

}  // namespace butter::cpu
