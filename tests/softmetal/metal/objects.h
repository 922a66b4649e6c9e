// The classes behind Metal's protocols. Compiled with ARC, unlike the product.
#pragma once

#import <Metal/Metal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../foundation/own.h"
#include "../msl/runner.h"
#include "support.h"

NSError* sm_error(NSErrorDomain domain, NSInteger code, const std::string& message);
NSInteger softmetal_macos_version();

/// What all have: a label, the device, and a number that tells dead objects from new ones at the
/// same address.
@interface SMObject : NSObject {
 @public
  uint64_t _serial;
}
@property(copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end

@interface SMDevice : NSObject <MTLDevice>
@end
SMDevice* sm_device();

@interface SMBuffer : SMObject <MTLBuffer> {
 @public
  char* _bytes;
  size_t _length;
  MTLResourceOptions _options;
  void (^_deallocator)(void*, NSUInteger);
  bool _is_owned;
}
@end

@interface SMLibrary : SMObject <MTLLibrary> {
 @public
  MslLibrary _units;
}
/// Null and an error if the file is no library.
+ (SMLibrary*)newAtPath:(const std::string&)path error:(NSError* __autoreleasing*)error;
/// Compiles, or takes the result of an earlier run.
+ (SMLibrary*)newFromSource:(const char*)source
                   fastMath:(BOOL)fastMath
                      error:(NSError* __autoreleasing*)error;
@end

struct SMConstant {
  MTLDataType type;
  std::string bytes;
};

@interface MTLFunctionConstantValues () {
 @public
  std::map<NSUInteger, SMConstant> _byIndex;
  std::map<std::string, SMConstant> _byName;
}
@end

@interface SMFunction : SMObject <MTLFunction> {
 @public
  SMLibrary* _library;
  const MslUnit* _unit;
  const MslKernel* _kernel;
  std::map<uint32_t, std::string> _values;  // by position in the unit's constants
  bool _is_special;                         // made with constant values
}
/// "" or what is missing.
- (std::string)missingConstants;
@end

@interface SMPipeline : SMObject <MTLComputePipelineState> {
 @public
  SMFunction* _function;
  bool _for_indirect, _whole_simdgroups;
  NSUInteger _maxThreads;
}
- (MTLComputePipelineReflection*)reflection;
@end

@interface SMFence : SMObject <MTLFence>
@end

@interface SMEvent : SMObject <MTLSharedEvent>
/// Blocks until the value is reached; fatal after a long time.
- (void)await:(uint64_t)value;
@end

@interface SMResidencySet : NSObject <MTLResidencySet>
- (instancetype)initWithLabel:(NSString*)label;
/// Serials of what was committed.
- (std::vector<uint64_t>)committed;
@end
