#pragma once

#import <Metal/MTLTypes.h>

@interface MTLBinaryArchiveDescriptor : NSObject <NSCopying>
@property(copy, nonatomic) NSURL* url;
@end

@protocol MTLBinaryArchive <NSObject>
@property(copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                            error:(NSError* __autoreleasing*)error;
- (BOOL)serializeToURL:(NSURL*)url error:(NSError* __autoreleasing*)error;
@end
