// What compute and blit encoders share.
#import "encoders.h"

@implementation SMEncoder
- (instancetype)initWithCommands:(SMCommandBuffer*)commands {
  self = [super init];
  _commands = commands;
  return self;
}
- (void)endEncoding {
  CHECK(!_has_ended, "endEncoding twice");
  _has_ended = true;
  sm::Step step;
  step.pass = std::move(_pass);
  [_commands add:std::move(step)];
  _commands->_has_encoder = false;
  _commands = nil;
}
- (void)updateFence:(id<MTLFence>)fence {
  CHECK(!_has_ended, "updateFence: after endEncoding");
  [_commands keep:fence];
  _pass.updates.push_back(((SMFence*)fence)->_serial);
}
- (void)waitForFence:(id<MTLFence>)fence {
  CHECK(!_has_ended, "waitForFence: after endEncoding");
  [_commands keep:fence];
  _pass.waits_for.push_back(((SMFence*)fence)->_serial);
}
- (void)insertDebugSignpost:(NSString*)string {
  (void)string;
}
- (void)pushDebugGroup:(NSString*)string {
  (void)string;
}
- (void)popDebugGroup {
}
- (void)dealloc {
  CHECK(_has_ended, "an encoder was released without endEncoding");
}
@end
