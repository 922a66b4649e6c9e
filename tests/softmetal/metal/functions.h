#pragma once

#import "objects.h"

@interface SMFunction ()
/// Takes the values that its kernel's file has constants for; "" or what is wrong.
- (std::string)specialize:(MTLFunctionConstantValues*)values;
@end

@interface SMArgumentEncoder : SMObject <MTLArgumentEncoder>
- (instancetype)initWithFunction:(SMFunction*)function index:(NSUInteger)index;
@end
