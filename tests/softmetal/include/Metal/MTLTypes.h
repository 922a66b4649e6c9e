#pragma once

#import <Foundation/Foundation.h>

#ifdef __cplusplus
#define MTL_EXTERN extern "C"
#else
#define MTL_EXTERN extern
#endif

typedef struct {
  NSUInteger width, height, depth;
} MTLSize;

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  MTLSize size = {width, height, depth};
  return size;
}

typedef struct {
  uint64_t _impl;
} MTLResourceID;

typedef uint64_t MTLGPUAddress;

@protocol MTLArgumentEncoder
, MTLBinaryArchive, MTLBinding, MTLBlitCommandEncoder, MTLBuffer, MTLCommandBuffer, MTLCommandQueue,
    MTLComputeCommandEncoder, MTLComputePipelineState, MTLDevice, MTLEvent, MTLFence, MTLFunction,
    MTLIndirectCommandBuffer, MTLIndirectComputeCommand, MTLLibrary, MTLResidencySet,
    MTLSharedEvent;
@class MTLBinaryArchiveDescriptor, MTLCommandBufferDescriptor, MTLCompileOptions,
    MTLComputePipelineDescriptor, MTLComputePipelineReflection, MTLFunctionConstantValues,
    MTLIndirectCommandBufferDescriptor, MTLResidencySetDescriptor, MTLSharedEventListener;
