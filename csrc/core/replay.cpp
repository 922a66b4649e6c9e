#include "core/replay.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>

#include "core/eager_encoder.h"
#include "core/error.h"
#include "step_fields.h"

namespace butter {
namespace {

/// CPU time of this thread: waking the workers may hand them its core for milliseconds.
uint64_t cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

bool binds_tokens(const Plan& plan) {
  return std::ranges::any_of(plan.dispatches, [](const Dispatch& d) {
    return std::ranges::any_of(d.bindings,
                               [](const Binding& b) { return b.kind == Binding::Kind::kTokens; });
  });
}

}  // namespace

Replay::Replay(std::shared_ptr<Device> device, std::shared_ptr<const Plan> plan, DispatchMode mode)
    : device_(std::move(device)),
      plan_(std::move(plan)),
      mode_(mode),
      reads_tokens_(binds_tokens(*plan_)),
      ring_(*device_, plan_->blocks, plan_->max_rows) {
  memory_.steps = ring_.all();
  memory_.blocks = plan_->blocks;
  const size_t bytes = std::max<size_t>(plan_->pool_bytes, 1);
  // What is kept for the host outlives its step.
  memory_.pool = plan_->kept.empty() ? device_->scratch(bytes) : device_->allocate(bytes);
  encoder_ = mode == DispatchMode::kEager
                 ? std::make_unique<EagerEncoder>(*device_, *plan_, memory_)
                 : device_->prepare(*plan_, memory_, mode);
}

Replay::~Replay() {
  for (Slot& slot : slots_) {
    try {
      if (slot.work) slot.work->wait();
    } catch (...) {
      // A destructor has nobody to tell; the step's error was never asked for.
    }
  }
}

void Replay::check(std::span<const uint32_t> words, std::span<const int32_t> tokens) const {
  const size_t need = plan_->blocks * step::kHeaderWords;
  if (words.size() != need) {
    throw Error(Code::kShape, "step",
                concat("wrong number of header words: got ", words.size(), ", need ", need));
  }
  size_t rows = 0;
  for (size_t at = 0; at < need; at += step::kHeaderWords) {
    const uint32_t own = words[at + step::kRows];
    if (own > plan_->max_rows) {
      throw Error(Code::kShape, "step",
                  concat("too many rows: got ", own, ", need at most ", plan_->max_rows));
    }
    rows += own;
  }
  if (tokens.size() != rows && (reads_tokens_ || !tokens.empty())) {
    throw Error(Code::kShape, "step",
                concat("wrong number of tokens: got ", tokens.size(), ", need ", rows, " (rows)"));
  }
  for (const StepLimit& limit : plan_->limits) {
    const uint32_t value = words[limit.block * step::kHeaderWords + limit.word];
    if (value > limit.maximum) {
      throw Error(Code::kShape, "step",
                  concat("step word ", limit.word, " is beyond what was recorded: got ", value,
                         ", need at most ", limit.maximum));
    }
  }
  if (plan_->token_limit == 0) return;
  for (const int32_t token : tokens) {
    if (token < 0 || uint32_t(token) >= plan_->token_limit) {
      throw Error(
          Code::kShape, "step",
          concat("token id is out of range: got ", token, ", need 0..", plan_->token_limit - 1));
    }
  }
}

void Replay::finish(Slot& slot) {
  if (!slot.work || slot.waited) return;
  slot.waited = true;
  slot.work->wait();  // throws the step's error
  count(*slot.work);
}

void Replay::count(const Completion& work) {
  stats_.device_ns += work.device_ns();
  stats_.barrier_ns += work.barrier_ns();
  stats_.barriers += work.barriers();
}

Replay::Ticket Replay::submit(std::span<const uint32_t> words, std::span<const int32_t> tokens) {
  check(words, tokens);
  const std::lock_guard lock(mutex_);
  const uint32_t index = uint32_t(next_ % kRing);
  Slot& slot = slots_[index];
  finish(slot);
  const uint64_t start = cpu_ns();
  ring_.write(index, words, tokens);
  slot.work = encoder_->submit(index);
  slot.waited = false;
  stats_.encode_ns += cpu_ns() - start;
  ++stats_.submissions;
  return next_++;
}

int32_t Replay::wait(Ticket ticket) {
  int32_t token;
  wait_all(ticket, {&token, 1});
  return token;
}

void Replay::wait_all(Ticket ticket, std::span<int32_t> out_tokens) {
  std::shared_ptr<Completion> work;
  {
    const std::lock_guard lock(mutex_);
    if (ticket >= next_ || ticket + kRing < next_) {
      throw Error(Code::kConfig, "step",
                  concat("unknown ticket: got ", ticket, ", need one of the last ", kRing,
                         " before ", next_));
    }
    work = slots_[ticket % kRing].work;
  }
  // Unlocked, so that another thread may submit the next step meanwhile.
  std::exception_ptr error;
  try {
    work->wait();
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[ticket % kRing];
  const bool is_ours = slot.work == work && ticket + kRing >= next_;
  if (is_ours && !slot.waited) {
    slot.waited = true;
    count(*work);
  }
  if (error) std::rethrow_exception(error);
  if (!is_ours) throw Error(Code::kConfig, "step", "another thread has reused this step's slot.");
  for (uint32_t block = 0; block < out_tokens.size(); ++block) {
    out_tokens[block] = ring_.out_token(uint32_t(ticket % kRing), block);
  }
}

std::vector<uint64_t> Replay::profile(std::span<const uint32_t> words,
                                      std::span<const int32_t> tokens) {
  check(words, tokens);
  const std::lock_guard lock(mutex_);
  for (Slot& slot : slots_) finish(slot);
  const uint32_t index = uint32_t(next_ % kRing);
  ring_.write(index, words, tokens);
  return EagerEncoder(*device_, *plan_, memory_).profile(index);
}

std::vector<std::byte> Replay::read(uint32_t id) {
  for (const KeptTensor& kept : plan_->kept) {
    if (kept.id != id) continue;
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) finish(slot);
    std::vector<std::byte> bytes(kept.binding.bytes);
    if (bytes.empty()) return bytes;
    std::memcpy(bytes.data(), memory_.pool->host() + kept.binding.offset, bytes.size());
    return bytes;
  }
  throw Error(Code::kConfig, "replay",
              concat("tensor ", id, " was not kept. Call keep() while recording."));
}

ReplayStats Replay::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace butter
