// A line of the texts of INFO and CLUSTER INFO.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

inline void append_info_line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(":").append(value).append("\r\n");
}

}  // namespace holdfast
