// What tests may ask of the software Metal, beside Metal itself. Plain C, for ctypes.
//
// Environment: SOFTMETAL_PLANT (see softmetal_plant), SOFTMETAL_DELAY_US (a slow GPU: each command
// buffer starts so much later), SOFTMETAL_SHUFFLE=1 (commands between barriers run in random
// order), SOFTMETAL_MACOS=14 (no residency sets), SOFTMETAL_FAMILY=7..9 (Apple GPU family; default
// 7; 0: no GPU), SOFTMETAL_MEMORY (bytes of the device), SOFTMETAL_MAX_THREADS (of a group),
// SOFTMETAL_CACHE (folder for newLibraryWithSource), OBJCRT_ZOMBIES=1 (keep all dead objects),
// MSL_THREADS.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Counts of all calls since the last reset, as JSON: {"compute setBuffer:offset:atIndex:": 12}.
/// Kinds: device, library, archive, queue, command_buffer, compute, blit, indirect, argument,
/// event, residency. Returns the length of the text; writes at most `size` bytes of it.
size_t softmetal_calls(char* text, size_t size);
void softmetal_reset_calls(void);

/// The number of calls of one kind, or of one call ("compute", "compute endEncoding").
uint64_t softmetal_call_count(const char* prefix);
/// Calls of encoders: compute, blit and indirect commands.
uint64_t softmetal_encoder_calls(void);

/// Waits until no command buffer is in a queue or held by its thread.
void softmetal_settle(void);

/// Objects and heap blocks alive; 1 once MTLCreateSystemDefaultDevice was called: the device.
long softmetal_live_objects(void);
size_t softmetal_live_report(char* text, size_t size);

/// Makes the caller's later calls go wrong: "kind:N,..." acts on the N-th call from now, once.
///   skip_use_resource    a useResource, or one resource of useResources, is forgotten
///   skip_allocation      an addAllocation to a residency set is forgotten
///   skip_barrier         a memoryBarrier or setBarrier is forgotten
///   shift_binding        a buffer is bound one index too high
///   shift_offset         a buffer is bound 16 bytes too far
///   fail_command_buffer  a committed command buffer stops half way with an error
///   fail_allocation      a buffer, or an indirect command buffer, cannot be allocated
///   fail_pipeline        a pipeline cannot be made
///   leak                 a buffer that is bound is retained once too often
///   over_release         a buffer that is bound is released once too often
/// An unknown kind is fatal. An empty string plants nothing.
void softmetal_plant(const char* faults);

/// Planted faults that have not happened yet.
int softmetal_planted(void);

#ifdef __cplusplus
}
#endif
