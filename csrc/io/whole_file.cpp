#include "io/whole_file.h"

#include <cstdio>
#include <memory>

namespace butter {

std::optional<std::string> read_whole_file(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  char part[1 << 14];
  // The files of /proc and /sys do not know their size.
  while (const size_t n = std::fread(part, 1, sizeof part, file.get())) text.append(part, n);
  if (std::ferror(file.get())) return std::nullopt;
  return text;
}

}  // namespace butter
