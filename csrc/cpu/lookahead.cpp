#include "cpu/lookahead.h"

#include <algorithm>
#include <optional>

#include "core/expr.h"

namespace butter::cpu {
namespace {

// Less is not worth the way; more would push out of a core's cache what the next kernels need.
constexpr size_t kLeast = size_t{1} << 14;
constexpr uint32_t kMost = 1u << 17;
// Kernels between that stream nothing, or whose share of a read is not known.
constexpr size_t kReach = 8;

struct Stream {
  const std::byte* begin;
  size_t bytes;
};

/// The largest input of which group i of a one-dimensional grid reads the i-th part, if any.
std::optional<Stream> stream_of(const Dispatch& d, const Task& task, uint32_t warp) {
  if (task.chunks < 2 || d.grid[1] * d.grid[2] != 1) return std::nullopt;
  std::optional<Stream> largest;
  for (size_t i = 0; i < d.bindings.size(); ++i) {
    const ParamInfo& param = d.kernel->params[i];
    const Binding& binding = d.bindings[i];
    if (param.kind != ParamKind::kIn || binding.kind != Binding::Kind::kBuffer) continue;
    if (param.shape.size() < 2 || binding.bytes < kLeast) continue;
    const auto outer = uint64_t(evaluate(param.shape[0], d.dims(), warp));
    const uint64_t each = (outer + task.groups - 1) / task.groups;
    if (outer < task.groups || (outer + each - 1) / each != task.groups) continue;
    if (largest && largest->bytes >= binding.bytes) continue;
    largest = Stream{static_cast<const std::byte*>(task.args.buffers[i]), binding.bytes};
  }
  return largest;
}

/// Where the share of a worker begins in a phase all of whose tasks have a stream.
std::optional<Stretch> stretch_of(const Submission& work, const Plan& plan, const Phase& phase,
                                  uint32_t worker, uint32_t workers, uint32_t warp) {
  uint32_t chunk = uint32_t(uint64_t(phase.chunks) * worker / workers);
  if (chunk == uint32_t(uint64_t(phase.chunks) * (worker + 1) / workers)) return Stretch{};
  uint32_t t = phase.begin;
  while (chunk >= work.tasks[t].chunks) chunk -= work.tasks[t++].chunks;
  const Task& task = work.tasks[t];
  const std::optional<Stream> stream = stream_of(plan.dispatches[t], task, warp);
  if (!stream) return std::nullopt;
  const uint64_t group = uint64_t(task.groups) * chunk / task.chunks;
  const uint64_t start = stream->bytes * group / task.groups;
  return Stretch{stream->begin + start, uint32_t(std::min<uint64_t>(stream->bytes - start, kMost))};
}

}  // namespace

void plan_lookahead(Submission& work, const Plan& plan, uint32_t workers, uint32_t warp) {
  work.workers = workers;
  work.stretches.clear();
  if (workers < 2) return;
  for (size_t p = 0; p < work.phases.size(); ++p) {
    work.phases[p].ahead = Phase::kNone;
    const size_t end = std::min(work.phases.size(), p + 1 + kReach);
    for (size_t next = p + 1; next < end; ++next) {
      const auto first = work.stretches.size();
      for (uint32_t w = 0; w < workers; ++w) {
        const auto stretch = stretch_of(work, plan, work.phases[next], w, workers, warp);
        if (!stretch) break;
        work.stretches.push_back(*stretch);
      }
      if (work.stretches.size() == first + workers) {
        work.phases[p].ahead = uint32_t(first);
        break;
      }
      work.stretches.resize(first);
    }
  }
}

}  // namespace butter::cpu
