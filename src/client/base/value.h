// A reply of a server, of any shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::client {

struct Value {
  enum class Kind : uint8_t {
    kNull,     // a null bulk or a null array
    kInteger,  // `integer`
    kStatus,   // `text`, as in +OK
    kBulk,     // `text`, any bytes
    kArray,    // `elements`
    kError,    // `text`, with its code
    kLost,     // no answer will come; `text` has the reason
  };
  Kind kind = Kind::kLost;
  int64_t integer = 0;
  std::string text;
  std::vector<Value> elements;
};

}  // namespace holdfast::client
