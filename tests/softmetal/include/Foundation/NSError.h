#pragma once

#import <Foundation/NSObject.h>

typedef NSString* NSErrorDomain;

@interface NSError : NSObject <NSCopying>
@property(readonly) NSInteger code;
@property(readonly, copy) NSErrorDomain domain;
@property(readonly, copy) NSString* localizedDescription;
@end
