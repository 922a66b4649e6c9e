// The part of Metal's Objective-C API that Butter uses, declared by hand (see Foundation.h).
#pragma once

#import <Metal/MTLBinaryArchive.h>
#import <Metal/MTLBlitCommandEncoder.h>
#import <Metal/MTLBuffer.h>
#import <Metal/MTLCommandBuffer.h>
#import <Metal/MTLCommandQueue.h>
#import <Metal/MTLComputeCommandEncoder.h>
#import <Metal/MTLComputePipeline.h>
#import <Metal/MTLDevice.h>
#import <Metal/MTLEvent.h>
#import <Metal/MTLIndirectCommandBuffer.h>
#import <Metal/MTLLibrary.h>
#import <Metal/MTLResidencySet.h>
#import <Metal/MTLTypes.h>
