// Paths and queries of URLs. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// All bytes but letters, digits and -._~ as %NN.
std::string percent_encoded(std::string_view bytes);
// Returns nullopt if a % has no two hex digits behind it.
std::optional<std::string> percent_decoded(std::string_view text);

struct Url {
  std::string_view path;           // as sent
  std::vector<std::string> parts;  // of the path, decoded: "/a/b%2Fc" has "a" and "b/c"
  std::map<std::string, std::string, std::less<>> query;

  // Returns the value; `otherwise` if the query does not name it.
  std::string_view value(std::string_view name, std::string_view otherwise) const;
};

// Parses the target of a request, which starts with "/". Returns nullopt if it is malformed, or if the
// query names a value twice.
std::optional<Url> parse_url(std::string_view target);

// Decodes base64 (RFC 4648, section 4). Returns nullopt if it is malformed.
std::optional<std::string> base64_decoded(std::string_view text);

}  // namespace holdfast
