#include "core/batch_loop.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "step_fields.h"

namespace butter {
namespace {

constexpr size_t kAhead = 2;  // steps in flight

}  // namespace

BatchLoop::BatchLoop(std::shared_ptr<Replay> replay, BatchConfig config)
    : replay_(std::move(replay)),
      config_(config),
      rows_(replay_->plan().blocks),
      words_(rows_.size() * step::kHeaderWords),
      out_(rows_.size()) {
  check_splits(config_.splits);
}

BatchLoop::~BatchLoop() { end_all(StopReason::kCancelled); }

const BatchLoop::Row& BatchLoop::checked(uint32_t row) const {
  if (row < rows_.size()) return rows_[row];
  throw Error(Code::kConfig, "batch", concat("unknown row: got ", row, ", need below ", rows()));
}

void BatchLoop::start(uint32_t row, DecodeStart start, std::vector<int32_t> stop_tokens) {
  const std::lock_guard lock(mutex_);
  const bool runs = checked(row).running;
  if (runs || std::ranges::any_of(steps_, [&](const Step& s) { return s.uses[row]; })) {
    throw Error(Code::kConfig, "batch", concat("row ", row, " is still in use. Take its steps."));
  }
  if (start.words.size() != step::kHeaderWords) {
    throw Error(Code::kShape, "batch",
                concat("wrong number of header words: got ", start.words.size(), ", need ",
                       step::kHeaderWords));
  }
  Row& r = rows_[row];
  r = {std::move(start), {stop_tokens.begin(), stop_tokens.end()}, 0, 0, true, StopReason::kNone};
  if (!can_submit(r)) {
    finish(r, r.start.limit == 0 ? StopReason::kLength : StopReason::kContext);
  }
}

bool BatchLoop::can_submit(const Row& row) const {
  return row.running && row.submitted < row.start.limit &&
         uint64_t{row.start.position} + row.submitted < config_.max_position;
}

void BatchLoop::write_words(Row& row, std::span<uint32_t> words) {
  // An idle row attends to its first position, so that what it computes in vain is finite.
  std::ranges::fill(words, 0u);
  words[step::kKvLen] = words[step::kSplits] = 1;
  if (!can_submit(row)) return;
  std::ranges::copy(row.start.words, words.begin());
  fill_decode_words(words, config_.splits, row.start.position + row.submitted,
                    row.start.draw + row.submitted);
  ++row.submitted;
}

bool BatchLoop::submit() {
  Step step{0, std::vector<bool>(rows_.size())};
  bool any = false;
  for (size_t r = 0; r < rows_.size(); ++r) any |= step.uses[r] = can_submit(rows_[r]);
  if (!any) return false;
  for (size_t r = 0; r < rows_.size(); ++r) {
    write_words(rows_[r], std::span(words_).subspan(r * step::kHeaderWords, step::kHeaderWords));
  }
  step.ticket = replay_->submit(words_, {});
  steps_.push_back(std::move(step));
  return true;
}

BatchStep BatchLoop::next() {
  const std::lock_guard lock(mutex_);
  try {
    // Step n+1 reads its input tokens on the device, so it need not wait for the host.
    while (!cancelled_ && steps_.size() < kAhead && submit()) continue;
  } catch (...) {
    end_all(StopReason::kError);
    throw;
  }
  return take_oldest();
}

BatchStep BatchLoop::take() {
  const std::lock_guard lock(mutex_);
  return take_oldest();
}

BatchStep BatchLoop::take_oldest() {
  BatchStep result;
  if (cancelled_.exchange(false)) {
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r].running) result.ended.push_back(r);
    }
    end_all(StopReason::kCancelled);
    return result;
  }
  if (steps_.empty()) return result;
  const Step step = std::move(steps_.front());
  steps_.pop_front();
  try {
    replay_->wait_all(step.ticket, out_);
    for (uint32_t r = 0; r < rows_.size(); ++r) {
      if (step.uses[r] && rows_[r].running) keep(result, r, out_[r]);
    }
  } catch (...) {
    end_all(StopReason::kError);
    throw;
  }
  return result;
}

void BatchLoop::keep(BatchStep& result, uint32_t row, int32_t token) {
  Row& r = rows_[row];
  ++r.taken;
  check_token(token, r.start.position + r.taken - 1);
  if (r.stop.contains(token)) {
    finish(r, StopReason::kStopToken);
  } else {
    result.tokens.push_back({row, token});
    if (r.submitted == r.taken && !can_submit(r)) {
      finish(r, r.taken == r.start.limit ? StopReason::kLength : StopReason::kContext);
    }
  }
  if (!r.running) result.ended.push_back(row);
}

void BatchLoop::finish(Row& row, StopReason reason) {
  row.running = false;
  row.reason = reason;
}

void BatchLoop::end(uint32_t row) {
  const std::lock_guard lock(mutex_);
  if (checked(row).running) finish(rows_[row], StopReason::kCancelled);
}

void BatchLoop::end_all(StopReason reason) {
  for (const Step& step : steps_) {
    try {
      replay_->wait_all(step.ticket, out_);
    } catch (...) {
      // The rows have ended; nobody asked for this step.
    }
  }
  steps_.clear();
  for (Row& row : rows_) {
    if (row.running) finish(row, reason);
  }
}

uint32_t BatchLoop::running() const {
  return uint32_t(std::ranges::count_if(rows_, [](const Row& row) { return row.running; }));
}

}  // namespace butter
