#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <tuple>

#include "bind/bind.h"
#include "core/cost.h"
#include "core/error.h"
#include "core/program.h"
#include "core/replay.h"
#include "core/step_ring.h"
#include "step_fields.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace butter {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;
using Words = std::vector<uint32_t>;

DispatchMode parse_mode(const std::string& name) {
  if (name == "eager") return DispatchMode::kEager;
  if (name == "argument_buffers") return DispatchMode::kArgumentBuffers;
  if (name == "icb") return DispatchMode::kIcb;
  throw Error(Code::kConfig, "dispatch",
              concat("unknown mode: got '", name, "', need eager, argument_buffers or icb"));
}

const char* mode_name(DispatchMode mode) {
  return mode == DispatchMode::kEager             ? "eager"
         : mode == DispatchMode::kArgumentBuffers ? "argument_buffers"
                                                  : "icb";
}

void dispatch(Program& program, std::string_view symbol, const std::vector<Program::Id>& tensors,
              const nb::sequence& consts, const Words& dims,
              const std::map<uint32_t, uint32_t>& dynamic) {
  const KernelInfo& info = find_kernel(symbol);
  std::vector<DynamicDim> pairs;
  for (const auto& [dim, word] : dynamic) pairs.push_back({dim, word});
  program.dispatch(info, tensors, constant_bits(info, consts), dims, pairs);
}

/// A plan and the device it was recorded for.
struct BoundPlan {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Plan> plan;
};

std::pair<uint64_t, uint64_t> cost(const BoundPlan& p, const std::optional<Words>& words) {
  const size_t need = p.plan->blocks * step::kHeaderWords;
  if (words && words->size() != need) {
    throw Error(Code::kShape, "plan",
                concat("wrong number of header words: got ", words->size(), ", need ", need));
  }
  const Cost total = plan_cost(*p.plan, words.value_or(Words()), p.device->info().warp);
  return {total.bytes, total.flops};
}

using Listed = std::tuple<std::string_view, uint32_t, uint32_t, std::vector<uint32_t>>;

std::vector<Listed> listing(const BoundPlan& p) {
  std::vector<Listed> rows;
  for (const Dispatch& d : p.plan->dispatches) {
    rows.emplace_back(d.kernel->symbol, d.phase, d.layer,
                      std::vector<uint32_t>(d.grid.begin(), d.grid.end()));
  }
  return rows;
}

nb::dict stats(const Replay& replay) {
  const ReplayStats s = replay.stats();
  nb::dict out;
  out["submissions"] = s.submissions;
  out["encode_ns"] = s.encode_ns;
  out["device_ns"] = s.device_ns;
  out["barrier_ns"] = s.barrier_ns;
  out["barriers"] = s.barriers;
  out["dispatches"] = replay.plan().dispatches.size();
  out["phases"] = replay.plan().phases;
  return out;
}

nb::bytes read(Replay& replay, uint32_t id) {
  std::vector<std::byte> bytes;
  {
    const nb::gil_scoped_release release;
    bytes = replay.read(id);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

void bind_recorder(nb::module_& m) {
  nb::class_<Program>(m, "Program", "Records kernel dispatches over tensors, which are ids.")
      .def(nb::init<std::shared_ptr<Device>, uint32_t, uint32_t>(), "device"_a, "max_rows"_a = 1,
           "blocks"_a = 1)
      .def(
          "activation",
          [](Program& p, size_t n, const std::string& t) {
            return p.activation(n, parse_dtype(t));
          },
          "nbytes"_a, "dtype"_a, "A tensor that lives from its first write to its last use.")
      .def(
          "buffer",
          [](Program& p, Buffer buffer, size_t offset, size_t nbytes, const std::string& t) {
            return p.buffer({std::move(buffer), offset, nbytes}, parse_dtype(t));
          },
          "buffer"_a, "offset"_a, "nbytes"_a, "dtype"_a,
          "Weights, caches and other state that outlives the step.")
      .def("step_tokens", &Program::step_tokens, "The step block's token ids: i32 [max_rows].")
      .def(
          "view",
          [](Program& p, Program::Id id, size_t offset, size_t nbytes, const std::string& t) {
            return p.view(id, offset, nbytes, parse_dtype(t));
          },
          "tensor"_a, "offset"_a, "nbytes"_a, "dtype"_a, "A byte range of another tensor.")
      .def("keep", &Program::keep, "tensor"_a, "Make an activation readable after the step.")
      .def("layer", &Program::layer, "index"_a, "Later dispatches belong to this layer.")
      .def("block", &Program::block, "index"_a,
           "Later dispatches and limits are about this step block.")
      .def("limit", &Program::limit, "word"_a, "maximum"_a,
           "Refuse steps whose header word exceeds the maximum.")
      .def("limit_tokens", &Program::limit_tokens, "count"_a,
           "Refuse steps with a token id outside 0..count-1.")
      .def(
          "dispatch", &dispatch, "symbol"_a, "tensors"_a, "consts"_a = nb::tuple(),
          "dims"_a = nb::tuple(), "dynamic"_a = std::map<uint32_t, uint32_t>(),
          nb::sig("def dispatch(self, symbol: str, tensors: collections.abc.Sequence[int], consts: "
                  "collections.abc.Sequence[float] = (), dims: collections.abc.Sequence[int] = (), "
                  "dynamic: collections.abc.Mapping[int, int] = {}) -> None"),
          "Record one kernel. `dynamic` maps a dim's index to the step word it follows.")
      .def(
          "finish",
          [](Program& p) {
            return BoundPlan{p.device(), std::make_shared<const Plan>(p.finish())};
          },
          "Plan memory and phases; the program is empty afterwards.");

  nb::class_<BoundPlan>(m, "Plan", "A recorded program with its memory and phases.")
      .def_prop_ro("dispatches", [](const BoundPlan& p) { return p.plan->dispatches.size(); })
      .def_prop_ro("phases", [](const BoundPlan& p) { return p.plan->phases; })
      .def_prop_ro("layers", [](const BoundPlan& p) { return p.plan->layers; })
      .def_prop_ro("blocks", [](const BoundPlan& p) { return p.plan->blocks; })
      .def_prop_ro("max_rows", [](const BoundPlan& p) { return p.plan->max_rows; })
      .def_prop_ro("pool_nbytes", [](const BoundPlan& p) { return p.plan->pool_bytes; })
      .def("cost", &cost, "words"_a = nb::none(),
           "(bytes, flops) of a step; dynamic dims count at their maximum without words.")
      .def("listing", &listing, "(symbol, phase, layer, grid) of each dispatch.")
      .def(
          "prepare",
          [](const BoundPlan& p, const std::string& mode) {
            return std::make_shared<Replay>(p.device, p.plan, parse_mode(mode));
          },
          "mode"_a = "eager", "Make it ready to run: eager, argument_buffers or icb.");
}

}  // namespace

void bind_program(nb::module_& m) {
  bind_recorder(m);
  m.attr("STEP_SLOTS") = kRing;
  nb::class_<Replay>(m, "Replay", "A plan made ready to run again and again.")
      .def(
          "submit",
          [](Replay& r, const Words& words, const std::vector<int32_t>& tokens) {
            const nb::gil_scoped_release release;
            return r.submit(words, tokens);
          },
          "words"_a, "tokens"_a = std::vector<int32_t>(),
          "Submit one step and return its ticket; at most three are in flight.")
      .def("wait", &Replay::wait, "ticket"_a, Release(),
           "Wait for a step; raise its error or return its out_token.")
      .def(
          "run",
          [](Replay& r, const Words& words, const std::vector<int32_t>& tokens) {
            const nb::gil_scoped_release release;
            return r.wait(r.submit(words, tokens));
          },
          "words"_a, "tokens"_a = std::vector<int32_t>(), "Submit one step and wait for it.")
      .def(
          "profile",
          [](Replay& r, const Words& words, const std::vector<int32_t>& tokens) {
            const nb::gil_scoped_release release;
            return r.profile(words, tokens);
          },
          "words"_a, "tokens"_a = std::vector<int32_t>(),
          "Run one step dispatch by dispatch; device time of each in ns, as in Plan.listing().")
      .def("read", &read, "tensor"_a, "Bytes of a kept activation.")
      .def_prop_ro("mode", [](const Replay& r) { return mode_name(r.mode()); })
      .def_prop_ro("stats", &stats,
                   "submissions, encode_ns, device_ns, barrier_ns, barriers so far; dispatches and "
                   "phases per step.");
}

}  // namespace butter
