// How many processor cores this process may use.
#pragma once

#include <cstddef>
#include <string>

namespace butter::cpu {

/// Hardware threads in the affinity mask, within the container's quota.
int usable_threads();

/// Physical cores among them; performance cores only where the system tells.
int usable_cores();

/// As the maker calls it: "AMD EPYC 9B14".
std::string processor_name();

size_t physical_memory();

}  // namespace butter::cpu
