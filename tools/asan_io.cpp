// The file readers alone as `butter._native`, for tools/asan_io.sh.
#include "bind/bind.h"

NB_MODULE(_native, m) {
  butter::bind_errors(m);
  butter::bind_io(m);
}

#ifdef BUTTER_HEAP_FILES
// The sanitizer cannot see a read past the end of a file, only past the end of its last page. So
// this Mapping is a heap block of exactly the file's size.
#include <fstream>
#include <iterator>

#include "core/error.h"
#include "io/mapping.h"

namespace butter {

std::shared_ptr<const Mapping> Mapping::open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  auto* bytes = new uint8_t[content.size()];
  content.copy(reinterpret_cast<char*>(bytes), content.size());
  return std::shared_ptr<const Mapping>(new Mapping(path, bytes, content.size()));
}

Mapping::~Mapping() { delete[] data_; }

std::span<const uint8_t> Mapping::range(size_t offset, size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) throw Error(Code::kFile, "file", "out of range");
  return {data_ + offset, bytes};
}

void Mapping::release(size_t, size_t) const {}
void Mapping::prefetch(size_t, size_t) const {}

}  // namespace butter
#endif
