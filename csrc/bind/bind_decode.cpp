#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/bind.h"
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

}  // namespace

void bind_decode(nb::module_& m) {
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
