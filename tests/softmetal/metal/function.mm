// Functions and the values of their constants.
#import "functions.h"

namespace {

struct TypeInfo {
  MTLDataType type;
  MslType ours;
  size_t bytes;
};
constexpr TypeInfo kTypes[] = {
    {MTLDataTypeBool, MslType::kBool, 1},     {MTLDataTypeChar, MslType::kChar, 1},
    {MTLDataTypeUChar, MslType::kUChar, 1},   {MTLDataTypeShort, MslType::kShort, 2},
    {MTLDataTypeUShort, MslType::kUShort, 2}, {MTLDataTypeInt, MslType::kInt, 4},
    {MTLDataTypeUInt, MslType::kUInt, 4},     {MTLDataTypeHalf, MslType::kHalf, 2},
    {MTLDataTypeFloat, MslType::kFloat, 4},   {MTLDataTypeBFloat, MslType::kBFloat, 2},
};

const TypeInfo& info(MTLDataType type) {
  for (const TypeInfo& t : kTypes) {
    if (t.type == type) return t;
  }
  sm::fail("a function constant of type %lu", (unsigned long)type);
}

}  // namespace

@implementation MTLFunctionConstantValues
- (void)setConstantValue:(const void*)value type:(MTLDataType)type atIndex:(NSUInteger)index {
  _byIndex[index] = {type, std::string(static_cast<const char*>(value), info(type).bytes)};
}
- (void)setConstantValues:(const void*)values type:(MTLDataType)type withRange:(NSRange)range {
  auto from = static_cast<const char*>(values);
  for (NSUInteger i = 0; i < range.length; ++i) {
    [self setConstantValue:from + i * info(type).bytes type:type atIndex:range.location + i];
  }
}
- (void)setConstantValue:(const void*)value type:(MTLDataType)type withName:(NSString*)name {
  _byName[name.UTF8String] = {type, std::string(static_cast<const char*>(value), info(type).bytes)};
}
- (void)reset {
  _byIndex.clear();
  _byName.clear();
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLFunctionConstantValues* copy = [MTLFunctionConstantValues new];
  copy->_byIndex = _byIndex;
  copy->_byName = _byName;
  return copy;
}
@end

@implementation SMFunction
- (MTLFunctionType)functionType {
  return MTLFunctionTypeKernel;
}
- (NSString*)name {
  return [NSString stringWithUTF8String:_kernel->name];
}

- (std::string)specialize:(MTLFunctionConstantValues*)values {
  _is_special = true;
  for (uint32_t i = 0; i < _unit->n_constants; ++i) {
    const MslConstant& c = _unit->constants[i];
    const SMConstant* value = nullptr;
    if (auto it = values->_byIndex.find(c.index); it != values->_byIndex.end()) value = &it->second;
    if (auto it = values->_byName.find(c.name); it != values->_byName.end()) value = &it->second;
    if (!value) continue;
    if (info(value->type).ours != c.type) {
      return std::string("function constant '") + c.name + "' got a value of another type";
    }
    _values[i] = value->bytes;
  }
  return [self missingConstants];
}
- (std::string)missingConstants {
  for (uint32_t i = 0; i < _kernel->n_constants; ++i) {
    const uint32_t needed = _kernel->constants[i];
    if (_values.count(needed)) continue;
    return std::string("function '") + _kernel->name + "' needs a value for constant '" +
           _unit->constants[needed].name + "'";
  }
  return "";
}

- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)bufferIndex {
  CALL("library");
  return [[SMArgumentEncoder alloc] initWithFunction:self index:bufferIndex];
}
@end
