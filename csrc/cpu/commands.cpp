#include "cpu/commands.h"

#include "cpu/chunking.h"
#include "cpu/pso_cache.h"

namespace butter::cpu {

void* address(const Slice& slice) { return slice.buffer->host() + slice.offset; }

CpuCommands::CpuCommands(Pool& pool, const DeviceInfo& info)
    : pool_(pool), info_(info), work_(std::make_shared<Submission>()) {}

void CpuCommands::dispatch(const Pipeline& pipeline, const Launch& launch) {
  if (submitted_) {
    // The work has ended, or the caller would not fill this object again.
    work_->tasks.clear();
    work_->phases.clear();
    buffers_.clear();
    scalars_.clear();
    offsets_.clear();
    phase_begin_ = 0;
    submitted_ = false;
  }
  const KernelInfo& info = pipeline.info;
  offsets_.emplace_back(buffers_.size(), scalars_.size());
  for (const Slice& slice : launch.slices) buffers_.push_back(address(slice));
  if (info.uses_step) buffers_.push_back(address(launch.step));
  scalars_.insert(scalars_.end(), launch.scalars.begin(), launch.scalars.end());
  const auto& [x, y, z] = launch.grid;
  const uint32_t groups = x * y * z;
  const uint32_t chunks = chunk_count(info, launch.scalars.subspan(info.consts.size()), groups,
                                      info_.warp, info_.threads);
  work_->tasks.push_back({static_cast<const CpuPipeline&>(pipeline).fn,
                          {nullptr, nullptr, {x, y, z}},
                          groups,
                          chunks});
}

void CpuCommands::barrier() {
  const uint32_t end = uint32_t(work_->tasks.size());
  if (submitted_ || end == phase_begin_) return;
  Phase phase{phase_begin_, end, 0};
  count_chunks(*work_, phase);
  work_->phases.push_back(phase);
  phase_begin_ = end;
}

std::shared_ptr<Completion> CpuCommands::submit() {
  if (submitted_) {  // nothing was added since
    work_->tasks.clear();
    work_->phases.clear();
  }
  barrier();
  for (size_t i = 0; i < work_->tasks.size(); ++i) {
    work_->tasks[i].args.buffers = buffers_.data() + offsets_[i].first;
    work_->tasks[i].args.scalars = scalars_.data() + offsets_[i].second;
  }
  work_->workers = info_.threads;
  submitted_ = true;
  pool_.submit(work_);
  return work_;
}

}  // namespace butter::cpu
