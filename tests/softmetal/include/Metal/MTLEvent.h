#pragma once

#import <Metal/MTLTypes.h>

typedef void (^MTLSharedEventNotificationBlock)(id<MTLSharedEvent>, uint64_t value);

@protocol MTLFence <NSObject>
@property(readonly) id<MTLDevice> device;
@property(copy, atomic) NSString* label;
@end

@protocol MTLEvent <NSObject>
@property(readonly) id<MTLDevice> device;
@property(copy, atomic) NSString* label;
@end

@interface MTLSharedEventListener : NSObject
- (instancetype)init;
@end

@protocol MTLSharedEvent <MTLEvent>
- (void)notifyListener:(MTLSharedEventListener*)listener
               atValue:(uint64_t)value
                 block:(MTLSharedEventNotificationBlock)block;
- (BOOL)waitUntilSignaledValue:(uint64_t)value
                     timeoutMS:(uint64_t)milliseconds API_AVAILABLE(macos(15.0));
@property(readwrite) uint64_t signaledValue;
@end
