#pragma once

#import "objects.h"

@interface SMBinaryArchive : SMObject <MTLBinaryArchive>
- (bool)load:(const char*)path;
- (bool)holds:(id<MTLFunction>)function;
@end
