// MODULE and FUNCTION, for dashboards that ask for them: the server has no modules and no functions, and
// answers as a Redis without any.
#include <string>

#include "core/command/handlers.h"
#include "core/state/request.h"

namespace holdfast {

void cmd_module_list(Request& r) { r.reply.array(0); }

void cmd_module_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "LIST",
      "    Return a list of loaded modules: always empty, as Holdfast loads none.",
  };
  reply_help(r, kLines);
}

void cmd_function_list(Request& r) {
  bool named = false;
  bool with_code = false;
  for (size_t i = 2; i < r.argc(); ++i) {
    if (!with_code && equals_ignore_case(r.arg(i), "WITHCODE")) {
      with_code = true;
    } else if (!named && equals_ignore_case(r.arg(i), "LIBRARYNAME")) {
      if (++i == r.argc()) return r.reply.error("ERR library name argument was not given");
      named = true;
    } else {
      return r.reply.error("ERR Unknown argument " + std::string(r.arg(i)));
    }
  }
  r.reply.array(0);
}

void cmd_function_stats(Request& r) {
  r.reply.map(2);
  r.reply.bulk("running_script");
  r.reply.null();
  r.reply.bulk("engines");
  r.reply.map(1);
  r.reply.bulk("LUA");
  r.reply.map(2);
  for (const std::string_view what : {"libraries_count", "functions_count"}) {
    r.reply.bulk(what);
    r.reply.integer(0);
  }
}

// Version 10 of the format of RDB files, and the checksum of no functions.
void cmd_function_dump(Request& r) {
  using namespace std::string_view_literals;
  r.reply.bulk("\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda"sv);
}

void cmd_function_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "DUMP",
      "    Return a serialized payload of the functions: there are none.",
      "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
      "    Return the libraries: always empty, as Holdfast runs scripts by EVAL only.",
      "STATS",
      "    Return the running function, which is nil, and the engines.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
