#pragma once

#import "objects.h"

/// Null if there is no memory.
SMBuffer* sm_make_buffer(size_t length, MTLResourceOptions options) NS_RETURNS_RETAINED;
SMBuffer* sm_adopt_buffer(void* bytes, size_t length, MTLResourceOptions options,
                          void (^deallocator)(void*, NSUInteger)) NS_RETURNS_RETAINED;

/// Where a fault is planted: leaks the buffer, or releases what the caller has not retained.
void sm_miscount(SMBuffer* buffer);
