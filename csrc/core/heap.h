// The C library's heap.
#pragma once

namespace butter {

/// Gives free pages inside the heap back to the system, where the C library keeps them otherwise.
void trim_heap();

}  // namespace butter
