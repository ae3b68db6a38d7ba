// MODULE, for dashboards that ask for it: the server has no modules, and answers as a Redis without any.
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

}  // namespace holdfast
