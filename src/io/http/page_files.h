// The files of the dashboard, as the program contains them: src/io/http/page and the chart library, which
// src/io/http/page.mk turns into C++. The files are the same for each client, and need no permission: they
// have no data of the server.
#pragma once

#include <span>
#include <string_view>

namespace holdfast {

struct PageFile {
  std::string_view path;  // as in a request: "/" or "/page/app.js"
  std::string_view content_type;
  std::string_view bytes;
};

// They live as long as the program.
std::span<const PageFile> page_files();

}  // namespace holdfast
