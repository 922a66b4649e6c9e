#pragma once

#import <Foundation/NSObject.h>

@interface NSURL : NSObject <NSCopying>
+ (NSURL*)fileURLWithPath:(NSString*)path;
@end
