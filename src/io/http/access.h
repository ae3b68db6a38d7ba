// Who may do what over HTTP: the login, and the checks that protect a server from the pages of a browser.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/types.h"
#include "io/http/answer.h"
#include "io/http/request_parser.h"

namespace holdfast {

class Engine;
struct AclUser;
struct Config;
struct VisitorAddress;

// The client behind a request.
struct Visitor {
  std::string peer;       // "127.0.0.1:4711"
  std::string local;      // the server's address of the connection
  bool loopback = false;  // it is on this machine
  bool tls = false;
};

VisitorAddress address_of(const Visitor& visitor);

// A server without a password serves only its own machine, unless `protects` is false.
struct AccessRules {
  bool protects = true;
};

// The result of a check: the user, or the refusal.
struct Access {
  const AclUser* user = nullptr;
  HttpAnswer refusal;

  bool allowed() const { return user != nullptr; }
};

// Finds the user of a request. Without an Authorization field it is "default", if that user needs no
// password. Then only clients on this machine are allowed, with a login too, as in protected mode. For a
// user without a password the request must name this machine. A failed login gets an entry in ACL LOG.
Access log_in(Engine& engine, Now now, const HttpRequest& request, const Visitor& visitor,
              AccessRules rules);

// Checks that the user may run this command. A denial gets an entry in ACL LOG.
Access check_command(Engine& engine, Now now, Access access, const Visitor& visitor,
                     std::span<const std::string_view> argv);

// Whether the client is a program on this machine, or a page of this server there.
bool is_on_this_machine(const HttpRequest& request, const Visitor& visitor);

// Whether the Origin of a request is the server itself. Browsers send one with each POST.
bool has_own_origin(const HttpRequest& request, const Visitor& visitor);

// Logs a rejected request that would have changed something.
// `user` is null if it is not known.
void audit_refusal(const Config& config, const HttpRequest& request, const Visitor& visitor,
                   const AclUser* user);

}  // namespace holdfast
