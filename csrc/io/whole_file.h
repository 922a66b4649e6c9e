// Small files that the system or this build wrote.
#pragma once

#include <optional>
#include <string>

namespace butter {

/// All of it; nothing if it cannot be read. Without streams, as core/error.h says why.
std::optional<std::string> read_whole_file(const std::string& path);

}  // namespace butter
