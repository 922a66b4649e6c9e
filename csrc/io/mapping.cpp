#include "io/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "io/text.h"

namespace butter {
namespace {

static_assert(sizeof(size_t) == 8, "files larger than 4 GiB need 64-bit addresses");

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(Code::kFile, "file", concat(quoted(path, kPathChars), ": ", what));
}

std::string reason(int code) { return std::generic_category().message(code); }

const char* kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

std::shared_ptr<const Mapping> Mapping::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to would wait forever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, "cannot be opened: " + reason(errno));

  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) fail(path, "cannot be examined: " + reason(errno));
  if (!S_ISREG(info.st_mode)) {
    fail(path, concat("is ", kind_name(info.st_mode), ", need a regular file"));
  }
  if (info.st_size == 0) fail(path, "is empty: got 0 bytes. Download it again");

  const auto size = static_cast<size_t>(info.st_size);
  void* pages = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (pages == MAP_FAILED) {
    const int code = errno;
    fail(path, concat("cannot be mapped (", size, " bytes): ", reason(code)));
  }
  return std::shared_ptr<const Mapping>(new Mapping(path, static_cast<uint8_t*>(pages), size));
}

Mapping::~Mapping() { ::munmap(const_cast<uint8_t*>(data_), size_); }

std::span<const uint8_t> Mapping::range(size_t offset, size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) {
    fail(path_, concat("holds ", size_, " bytes: got a range of ", bytes, " bytes at ", offset));
  }
  return {data_ + offset, bytes};
}

void Mapping::release(size_t offset, size_t bytes) const {
  range(offset, bytes);
  const size_t page = page_bytes();
  const size_t first = (offset + page - 1) / page * page;
  // The last page of the file may be partial; nothing else lives in its tail.
  const size_t last = offset + bytes == size_ ? size_ : (offset + bytes) / page * page;
  if (first >= last) return;
  ::madvise(const_cast<uint8_t*>(data_) + first, last - first, MADV_DONTNEED);
}

void Mapping::prefetch(size_t offset, size_t bytes) const {
  range(offset, bytes);
  if (bytes == 0) return;
  const size_t first = offset / page_bytes() * page_bytes();
  ::madvise(const_cast<uint8_t*>(data_) + first, offset + bytes - first, MADV_WILLNEED);
}

}  // namespace butter
