#pragma once

#import <Metal/MTLResource.h>

typedef NS_ENUM(NSUInteger, MTLMutability) {
  MTLMutabilityDefault = 0,
  MTLMutabilityMutable = 1,
  MTLMutabilityImmutable = 2,
};

typedef NS_ENUM(NSInteger, MTLBindingType) {
  MTLBindingTypeBuffer = 0,
  MTLBindingTypeThreadgroupMemory = 1,
};

typedef NS_ENUM(NSUInteger, MTLBindingAccess) {
  MTLBindingAccessReadOnly = 0,
  MTLBindingAccessReadWrite = 1,
  MTLBindingAccessWriteOnly = 2,
};

@protocol MTLBinding <NSObject>
@property(readonly) NSString* name;
@property(readonly) MTLBindingType type;
@property(readonly) MTLBindingAccess access;
@property(readonly) NSUInteger index;
@property(readonly, getter=isUsed) BOOL used;
@property(readonly, getter=isArgument) BOOL argument;
@end

@protocol MTLBufferBinding <MTLBinding>
@property(readonly) NSUInteger bufferAlignment;
@property(readonly) NSUInteger bufferDataSize;
@end

@interface MTLPipelineBufferDescriptor : NSObject <NSCopying>
@property(nonatomic) MTLMutability mutability;
@end

@interface MTLPipelineBufferDescriptorArray : NSObject
- (MTLPipelineBufferDescriptor*)objectAtIndexedSubscript:(NSUInteger)bufferIndex;
- (void)setObject:(MTLPipelineBufferDescriptor*)buffer atIndexedSubscript:(NSUInteger)bufferIndex;
@end

@interface MTLComputePipelineReflection : NSObject
@property(readonly) NSArray<id<MTLBinding>>* bindings;
@end

@interface MTLComputePipelineDescriptor : NSObject <NSCopying>
@property(copy, atomic) NSString* label;
@property(readwrite, strong, atomic) id<MTLFunction> computeFunction;
@property(readwrite, atomic) BOOL threadGroupSizeIsMultipleOfThreadExecutionWidth;
@property(readwrite, atomic) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) MTLPipelineBufferDescriptorArray* buffers;
@property(readwrite, atomic) BOOL supportIndirectCommandBuffers;
@property(readwrite, copy, atomic) NSArray<id<MTLBinaryArchive>>* binaryArchives;
- (void)reset;
@end

@protocol MTLComputePipelineState <MTLAllocation, NSObject>
@property(readonly) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@property(readonly) NSUInteger threadExecutionWidth;
@property(readonly) NSUInteger staticThreadgroupMemoryLength;
@property(readonly) BOOL supportIndirectCommandBuffers;
@end
