#include "metal/queue.h"

#include <unistd.h>

#include <utility>

#include "core/error.h"
#include "metal/failure.h"

namespace butter::metal {

Queue::Queue(id<MTLDevice> device) : queue_([device newCommandQueue]), process_(getpid()) {
  if (!queue_.get()) throw Error(Code::kDevice, "metal", "Metal gave no command queue.");
}

Queue::~Queue() {
  for (const auto& entry : in_flight_) {
    if (const auto work = entry.lock()) work->block();
  }
}

std::shared_ptr<MetalCompletion> Queue::commit(id<MTLCommandBuffer> commands) {
  if (getpid() != process_) throw forked();
  auto work = std::make_shared<MetalCompletion>(commands);
  const std::lock_guard lock(mutex_);
  if (fault_) {
    work->fail(Code::kDevice, *std::exchange(fault_, std::nullopt));
    return work;
  }
  std::erase_if(in_flight_, [](const std::weak_ptr<MetalCompletion>& entry) {
    const auto alive = entry.lock();
    return !alive || alive->done();
  });
  in_flight_.push_back(work);
  [commands addCompletedHandler:^(id<MTLCommandBuffer> ended) {
    work->finish(ended);
  }];
  [commands commit];
  return work;
}

void Queue::inject_fault(const std::string& message) {
  const std::lock_guard lock(mutex_);
  fault_ = message;
}

void Queue::drain() {
  std::vector<std::weak_ptr<MetalCompletion>> pending;
  {
    const std::lock_guard lock(mutex_);
    pending = in_flight_;
  }
  for (const auto& entry : pending) {
    if (const auto work = entry.lock()) work->block();
  }
}

}  // namespace butter::metal
