// A reply of a server, of any shape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::client {

struct Value {
  enum class Kind : uint8_t {
    kNull,     // a null bulk or a null array
    kInteger,  // `integer`
    kStatus,   // `text`, as in +OK
    kBulk,     // `text`, any bytes
    kArray,    // `elements`
    kPush,     // the same, but not the answer to a request
    kError,    // `text`, with its code
    kLost,     // no answer will come; `text` has the reason
  };
  Kind kind = Kind::kLost;
  int64_t integer = 0;
  std::string text;
  std::vector<Value> elements;
};

// Of a map, which is a flat array of names and values: the value, or a null.
inline const Value& field(const Value& map, std::string_view name) {
  static const Value kNone{Value::Kind::kNull, 0, {}, {}};
  for (size_t i = 0; i + 1 < map.elements.size(); i += 2) {
    if (map.elements[i].text == name) return map.elements[i + 1];
  }
  return kNone;
}

}  // namespace holdfast::client
