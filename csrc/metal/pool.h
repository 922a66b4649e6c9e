// Autorelease pools that hold C++ exceptions.
#pragma once

// Of the runtime's stable interface: what @autoreleasepool compiles to.
extern "C" void* objc_autoreleasePoolPush(void);
extern "C" void objc_autoreleasePoolPop(void* pool);

namespace butter::metal {

/// @autoreleasepool { … }, but also drained when an exception leaves the block.
class Pool {
 public:
  Pool() : token_(objc_autoreleasePoolPush()) {}
  ~Pool() { objc_autoreleasePoolPop(token_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  void* token_;
};

}  // namespace butter::metal
