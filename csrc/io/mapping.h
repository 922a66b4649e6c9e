// A file's pages, read-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace butter {

/// A whole regular file mapped into memory. Immutable, safe to share between threads.
///
/// The size is read once, at open. A file that another process truncates afterwards raises
/// SIGBUS on access, as with every mmap; replace model files by rename, never in place.
class Mapping {
 public:
  /// Throws Error(kFile) for what is missing, unreadable, empty or not a regular file.
  static std::shared_ptr<const Mapping> open(const std::string& path);

  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const std::string& path() const { return path_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  /// Bytes [offset, offset + bytes). Throws Error(kFile) if the file does not hold them.
  std::span<const uint8_t> range(size_t offset, size_t bytes) const;

  /// Drops the pages that lie wholly inside the range from memory; a later access reads the file
  /// again. For weights that were copied or repacked.
  void release(size_t offset, size_t bytes) const;

  /// Starts reading the range in the background.
  void prefetch(size_t offset, size_t bytes) const;

 private:
  Mapping(std::string path, const uint8_t* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const uint8_t* data_;
  size_t size_;
};

}  // namespace butter
