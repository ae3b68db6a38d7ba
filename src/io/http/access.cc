// Logins by HTTP Basic. A browser sends requests in the name of any page: so a request of another page is
// rejected, and without a password also each host name that a page can give to this machine's address (DNS
// rebinding).
#include "io/http/access.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "core/base/config.h"
#include "core/base/parse.h"
#include "core/command/acl.h"
#include "core/command/command.h"
#include "core/engine/visitors.h"
#include "core/events/request_text.h"
#include "io/http/url.h"
#include "io/os/line_limit.h"
#include "io/os/log.h"

namespace holdfast {
namespace {

struct Login {
  std::string user;
  std::string password;
};

// Reads "Basic dXNlcjpwYXNzd29yZA==". An empty name means the user "default".
std::optional<Login> read_login(std::string_view field) {
  constexpr std::string_view kBasic = "basic ";
  if (field.size() < kBasic.size() || !equals_ignore_case(field.substr(0, kBasic.size()), kBasic))
    return std::nullopt;
  const std::optional<std::string> text = base64_decoded(field.substr(kBasic.size()));
  const size_t colon = text ? text->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  Login login{text->substr(0, colon), text->substr(colon + 1)};
  if (login.user.empty()) login.user = "default";
  return login;
}

// A host without its port: "[::1]:7380" is "[::1]".
std::string_view without_port(std::string_view host) {
  const size_t end = host.starts_with('[') ? host.find(']') : host.rfind(':');
  if (end == std::string_view::npos) return host;
  return host.substr(0, host.starts_with('[') ? end + 1 : end);
}

// Whether a host is a name or an address of this machine that no page can give to it.
bool is_own_host(std::string_view host, std::string_view local) {
  const std::string_view name = without_port(host);
  return equals_ignore_case(name, "localhost") || name == "127.0.0.1" || name == "[::1]" ||
         (!name.empty() && name == without_port(local));
}

// A browser names the page that makes it send a request. Other programs do not.
bool is_of_other_page(const HttpRequest& request) {
  return !request.fetch_site.empty() && request.fetch_site != "same-origin" && request.fetch_site != "none";
}

Access refused(int status, std::string_view why) { return {nullptr, refusal_of(status, why)}; }

Access log_in_by_password(Engine& engine, Now now, const Login& login, const Visitor& visitor) {
  const AclUser* user = authenticate(engine, login.user, login.password, address_of(visitor), now);
  if (user != nullptr) return {user, {}};
  return refused(401, "wrong user or password");
}

}  // namespace

VisitorAddress address_of(const Visitor& visitor) { return {visitor.peer, visitor.local}; }

Access log_in(Engine& engine, Now now, const HttpRequest& request, const Visitor& visitor,
              AccessRules rules) {
  if (is_of_other_page(request)) return refused(403, "requests of other pages are rejected");
  const AclUser* const open = user_without_login(engine);
  if (open != nullptr && rules.protects && !visitor.loopback)
    return refused(403, "without a password the server accepts requests from its own machine only");
  const std::optional<Login> login = read_login(request.authorization);
  if (!login && !request.authorization.empty()) return refused(401, "log in with HTTP Basic");
  if (!login && open == nullptr) return refused(401, "log in with a user of the server");
  Access access = login ? log_in_by_password(engine, now, *login, visitor) : Access{open, {}};
  // Any password fits a user that needs none, so a page can name such a user.
  if (access.allowed() && access.user->nopass && !is_own_host(request.host, visitor.local))
    return refused(403, "without a password the server must be reached by its address or as localhost");
  return access;
}

Access check_command(Engine& engine, Now now, Access access, const Visitor& visitor,
                     std::span<const std::string_view> argv) {
  if (!access.allowed()) return access;
  const Command* const command = find_row(argv);
  if (command == nullptr) return refused(403, "the user has no permission for this");
  const Verdict verdict =
      check_visitor_command(engine, *access.user, address_of(visitor), *command, argv, now);
  if (verdict.allowed()) return access;
  if (verdict.why == Denial::kKey) return refused(403, "the user has no permission to access this key");
  return refused(403, fmt::format("the user has no permission to run '{}'", command->name));
}

bool is_on_this_machine(const HttpRequest& request, const Visitor& visitor) {
  return visitor.loopback && !is_of_other_page(request) && is_own_host(request.host, visitor.local);
}

bool has_own_origin(const HttpRequest& request, const Visitor& visitor) {
  if (request.host.empty()) return false;
  return request.origin == fmt::format("{}://{}", visitor.tls ? "https" : "http", request.host);
}

void audit_refusal(const Config& config, const HttpRequest& request, const Visitor& visitor,
                   const AclUser* user) {
  static LineLimit limit;  // for clients without a login, too
  if (!config.audit || !may_log(limit, LogLevel::kNotice, "rejected POST")) return;
  std::string line = "http " + visitor.peer + " (user ";
  append_quoted(line, user == nullptr ? "" : std::string_view(user->name));
  line += "): POST ";
  append_quoted(line, cut_text(request.target));
  line += " rejected";
  config.audit(line);
}

}  // namespace holdfast
