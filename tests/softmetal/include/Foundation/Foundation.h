// The part of Foundation that Butter uses, declared by hand: enough to compile the Metal back end
// on Linux, and for the Mac without Apple's SDK. check_api.py compares it with Apple's metadata.
#pragma once

#import <Foundation/NSArray.h>
#import <Foundation/NSError.h>
#import <Foundation/NSObject.h>
#import <Foundation/NSProcessInfo.h>
#import <Foundation/NSString.h>
#import <Foundation/NSURL.h>
