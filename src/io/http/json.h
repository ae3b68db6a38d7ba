// JSON from bytes and from replies of the engine. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast {

// Appends bytes as a JSON string that a person can read: printable UTF-8 as it is, each other byte as \xNN.
// So the text is no exact copy; see percent_encoded().
void append_json_text(std::string& out, std::string_view bytes);

// "key":"value" and "key":12, each with a comma behind it.
void append_field(std::string& out, std::string_view name, std::string_view value);
void append_field(std::string& out, std::string_view name, int64_t value);
void append_field(std::string& out, std::string_view name, bool value);
// Ends an object or an array: replaces the last comma, if any, by `end`.
void close_json(std::string& out, char end);

// A name in a reply and its name in JSON.
struct JsonName {
  std::string_view reply;
  std::string_view json;
};

// Appends a complete RESP3 reply as JSON. The fields named in `names` are renamed. A field "key" of a map
// gets a field "key_id" beside it: the key's bytes, percent-encoded. Returns the bytes of the reply that it
// used; 0 if the reply is incomplete or nested too deep. An array ends at its first incomplete element:
// then `cut` is set.
size_t append_json(std::string& out, std::string_view reply, std::span<const JsonName> names, bool& cut);

}  // namespace holdfast
