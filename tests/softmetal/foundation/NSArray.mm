#import <Foundation/Foundation.h>

#include <vector>

@interface SMArray : NSArray {
 @public
  std::vector<id> _items;
}
@end

@implementation NSArray
+ (instancetype)arrayWithObjects:(const id*)objects count:(NSUInteger)count {
  SMArray* array = [SMArray alloc];
  for (NSUInteger i = 0; i < count; ++i) array->_items.push_back([objects[i] retain]);
  return [array autorelease];
}
- (NSUInteger)count {
  return 0;
}
- (id)objectAtIndex:(NSUInteger)index {
  (void)index;
  return nil;
}
- (id)objectAtIndexedSubscript:(NSUInteger)index {
  return [self objectAtIndex:index];
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  return [self retain];
}
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)length {
  NSUInteger filled = 0;
  while (filled < length && state->state < self.count) {
    buffer[filled++] = [self objectAtIndex:state->state++];
  }
  state->itemsPtr = buffer;
  state->mutationsPtr = &state->extra[0];
  return filled;
}
@end

@implementation SMArray
- (NSUInteger)count {
  return _items.size();
}
- (id)objectAtIndex:(NSUInteger)index {
  return _items.at(index);
}
- (void)dealloc {
  for (id item : _items) [item release];
  [super dealloc];
}
@end
