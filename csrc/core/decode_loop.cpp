#include "core/decode_loop.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "step_fields.h"

namespace butter {

void check_splits(const SplitRule& rule) {
  if (rule.max_splits == 0 || rule.split_len == 0) {
    throw Error(Code::kConfig, "decode",
                concat("the split rule is out of range: got max_splits ", rule.max_splits,
                       " and split_len ", rule.split_len, ", need at least 1"));
  }
}

void fill_decode_words(std::span<uint32_t> words, const SplitRule& rule, uint32_t position,
                       uint32_t draw) {
  const uint32_t kv_len = position + 1;
  words[step::kPos] = position;
  words[step::kRows] = 1;
  words[step::kKvLen] = kv_len;
  words[step::kSplits] = std::min(rule.max_splits, (kv_len - 1) / rule.split_len + 1);
  words[step::kDraw] = draw;
  words[step::kSample] = 1;
}

void check_token(int32_t token, uint32_t position) {
  if (token >= 0) return;
  throw Error(Code::kDevice, "decode",
              concat("no token could be drawn: got ", token, " at position ", position,
                     ", because every logit is NaN or -inf. Check the weights and biases."));
}

DecodeLoop::DecodeLoop(std::shared_ptr<Replay> replay, DecodeConfig config)
    : replay_(std::move(replay)),
      config_(std::move(config)),
      stop_(config_.stop_tokens.begin(), config_.stop_tokens.end()) {
  check_splits(config_.splits);
}

DecodeLoop::~DecodeLoop() { end(StopReason::kCancelled); }

void DecodeLoop::start(DecodeStart start) {
  const std::lock_guard lock(mutex_);
  if (running_) {
    throw Error(Code::kConfig, "decode", "the previous run has not ended. Cancel or finish it.");
  }
  if (start.words.size() != step::kHeaderWords) {
    throw Error(Code::kShape, "decode",
                concat("wrong number of header words: got ", start.words.size(), ", need ",
                       step::kHeaderWords));
  }
  start_ = std::move(start);
  submitted_ = 0;
  taken_ = 0;
  cancelled_ = false;
  reason_ = StopReason::kNone;
  stop_token_.reset();
  running_ = true;
  if (start_.limit == 0) return end(StopReason::kLength);
  if (!can_submit()) return end(StopReason::kContext);
  try {
    submit();
  } catch (...) {
    end(StopReason::kError);
    throw;
  }
}

bool DecodeLoop::can_submit() const {
  return submitted_ < start_.limit && uint64_t{start_.position} + submitted_ < config_.max_position;
}

void DecodeLoop::submit() {
  fill_decode_words(start_.words, config_.splits, start_.position + submitted_,
                    start_.draw + submitted_);
  tickets_[submitted_ % 2] = replay_->submit(start_.words, {});
  ++submitted_;
}

int32_t DecodeLoop::take() {
  // Step n+1 reads its input token on the device, so it need not wait for the host.
  // When n turns out to be the last, that one step is thrown away.
  if (submitted_ == taken_ || (config_.ahead && submitted_ == taken_ + 1 && can_submit())) submit();
  const int32_t token = replay_->wait(tickets_[taken_ % 2]);
  ++taken_;
  return token;
}

std::optional<int32_t> DecodeLoop::next() {
  const std::lock_guard lock(mutex_);
  if (running_ && cancelled_) end(StopReason::kCancelled);
  if (!running_) return std::nullopt;
  try {
    const int32_t token = take();
    check_token(token, position() - 1);
    if (stop_.contains(token)) {
      stop_token_ = token;
      end(StopReason::kStopToken);
      return std::nullopt;
    }
    if (submitted_ == taken_ && !can_submit()) {
      end(taken_ == start_.limit ? StopReason::kLength : StopReason::kContext);
    }
    return token;
  } catch (...) {
    end(StopReason::kError);
    throw;
  }
}

std::vector<int32_t> DecodeLoop::run(uint32_t count) {
  std::vector<int32_t> tokens;
  while (tokens.size() < count) {
    const std::optional<int32_t> token = next();
    if (!token) break;
    tokens.push_back(*token);
  }
  return tokens;
}

void DecodeLoop::end(StopReason reason) {
  if (!running_) return;
  for (uint32_t step = taken_; step < submitted_; ++step) {
    try {
      replay_->wait(tickets_[step % 2]);
    } catch (...) {
      // The run has ended; nobody asked for this step.
    }
  }
  submitted_ = taken_.load();
  reason_ = reason;
  running_ = false;
}

}  // namespace butter
