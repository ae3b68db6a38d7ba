// Bytes as the text of a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Appends `bytes` as a JSON string, with its quotation marks. The result is always valid UTF-8: a byte that
// is not part of valid UTF-8 becomes the text \xNN, and a control character its JSON escape.
void append_json_string(std::string& out, std::string_view bytes);

}  // namespace holdfast
