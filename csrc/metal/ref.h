// The one owner of Objective-C objects in this folder, which is compiled without ARC.
#pragma once

#include <utility>

namespace butter::metal {

/// Owns one reference. T is a pointer to a class, or id<Protocol>.
template <typename T>
class Ref {
 public:
  Ref() = default;
  /// Takes over the reference that new, alloc or copy returned.
  explicit Ref(T owned) : object_(owned) {}
  Ref(const Ref& other) : object_([other.object_ retain]) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { [object_ release]; }

  /// Adds a reference to an object that belongs to somebody else, such as an autoreleased one.
  static Ref keep(T borrowed) { return Ref([borrowed retain]); }

  T get() const { return object_; }
  operator T() const { return object_; }

 private:
  T object_ = nil;
};

}  // namespace butter::metal
