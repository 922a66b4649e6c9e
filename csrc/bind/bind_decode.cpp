#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.h"
#include "core/batch_loop.h"
#include "core/decode_loop.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace butter {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

const char* reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return nullptr;
    case StopReason::kStopToken:
      return "stop";
    case StopReason::kLength:
      return "length";
    case StopReason::kContext:
      return "context";
    case StopReason::kCancelled:
      return "cancelled";
    case StopReason::kError:
      break;
  }
  return "error";
}

std::optional<int32_t> next(DecodeLoop& loop) {
  const nb::gil_scoped_release release;
  return loop.next();
}

using Brought = std::pair<std::vector<std::pair<uint32_t, int32_t>>, std::vector<uint32_t>>;

Brought listed(const BatchStep& step) {
  Brought brought;
  for (const BatchStep::Token& t : step.tokens) brought.first.emplace_back(t.row, t.token);
  brought.second = step.ended;
  return brought;
}

void bind_batch(nb::module_& m) {
  nb::class_<BatchLoop>(m, "BatchLoop",
                        "Decodes several sequences with the next step already in flight.")
      .def(
          "__init__",
          [](BatchLoop* self, std::shared_ptr<Replay> replay, uint32_t max_position,
             uint32_t max_splits, uint32_t split_len) {
            new (self) BatchLoop(std::move(replay), {max_position, {max_splits, split_len}});
          },
          "replay"_a, "max_position"_a, "max_splits"_a = 1, "split_len"_a = 1)
      .def(
          "start",
          [](BatchLoop& loop, uint32_t row, std::vector<uint32_t> words, uint32_t position,
             uint32_t limit, uint32_t draw, std::vector<int32_t> stop_tokens) {
            loop.start(row, {std::move(words), position, draw, limit}, std::move(stop_tokens));
          },
          "row"_a, "words"_a, "position"_a, "limit"_a, "draw"_a = 0,
          "stop_tokens"_a = std::vector<int32_t>(),
          "Let a free row take part; its input token lies in the device's next-token buffer.")
      .def(
          "next",
          [](BatchLoop& loop) {
            const nb::gil_scoped_release release;
            return listed(loop.next());
          },
          "([(row, token)], [row that ended]) of the next step; submits ahead.")
      .def(
          "take",
          [](BatchLoop& loop) {
            const nb::gil_scoped_release release;
            return listed(loop.take());
          },
          "As next(), but submits nothing, so that rows become free.")
      .def("end", &BatchLoop::end, "row"_a, "Leave a row out of later steps; drop its tokens.")
      .def("cancel", &BatchLoop::cancel, "From any thread: end all rows at the next call.")
      .def(
          "reason",
          [](const BatchLoop& loop, uint32_t row) { return reason_name(loop.reason(row)); },
          "row"_a, nb::sig("def reason(self, row: int) -> str | None"), "As DecodeLoop.reason.")
      .def_prop_ro("rows", &BatchLoop::rows)
      .def_prop_ro("running", &BatchLoop::running, "Rows that will bring more tokens.")
      .def_prop_ro("in_flight", &BatchLoop::in_flight, "Steps that next() or take() wait for.");
}

}  // namespace

void bind_decode(nb::module_& m) {
  bind_batch(m);
  nb::class_<DecodeLoop>(m, "DecodeLoop",
                         "Decodes one sequence with the next step already in flight.")
      .def(
          "__init__",
          [](DecodeLoop* self, std::shared_ptr<Replay> replay, std::vector<int32_t> stop_tokens,
             uint32_t max_position, uint32_t max_splits, uint32_t split_len, bool ahead) {
            new (self)
                DecodeLoop(std::move(replay),
                           {std::move(stop_tokens), max_position, {max_splits, split_len}, ahead});
          },
          "replay"_a, "stop_tokens"_a, "max_position"_a, "max_splits"_a = 1, "split_len"_a = 1,
          "ahead"_a = true)
      .def(
          "start",
          [](DecodeLoop& loop, std::vector<uint32_t> words, uint32_t position, uint32_t limit,
             uint32_t draw) {
            const nb::gil_scoped_release release;
            loop.start({std::move(words), position, draw, limit});
          },
          "words"_a, "position"_a, "limit"_a, "draw"_a = 0,
          "Submit the first step; its input token lies in the device's next-token buffer.")
      .def("next", &next, "The next token, or None once the run has ended.")
      .def("run", &DecodeLoop::run, "count"_a, Release(), "Up to `count` tokens in one call.")
      .def("cancel", &DecodeLoop::cancel, "From any thread: end the run at the next token.")
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__",
           [](DecodeLoop& loop) {
             const std::optional<int32_t> token = next(loop);
             if (!token) throw nb::stop_iteration();
             return *token;
           })
      .def_prop_ro(
          "reason", [](const DecodeLoop& loop) { return reason_name(loop.reason()); },
          nb::sig("def reason(self) -> str | None"),
          "stop, length, context, cancelled, error; None while it runs.")
      .def_prop_ro("stop_token", &DecodeLoop::stop_token, "The token that ended the run.")
      .def_prop_ro("position", &DecodeLoop::position, "Positions with valid cache entries.")
      .def_prop_ro("taken", &DecodeLoop::taken, "Steps whose token was read; one draw each.");
}

}  // namespace butter
