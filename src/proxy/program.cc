// From the options to a server whose engine has its keys elsewhere.
#include "proxy/program.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "io/config/programs.h"
#include "io/net/door.h"
#include "io/net/server.h"
#include "io/os/log.h"
#include "io/program/serve.h"
#include "proxy/proxy.h"

namespace holdfast::proxy {

namespace {

// Connects the proxy with the loop of the server.
class ProxyDoor final : public Door {
 public:
  ProxyDoor(Proxy& proxy, Server& server) : proxy_(proxy), server_(server) {}

  Result<Done> start() override {
    proxy_.start(*server_.loop(), {[this]() -> const Now& { return server_.now(); },
                                   [this]() -> Effects& { return server_.effects(); },
                                   [this]() -> Engine& { return server_.engine(); },
                                   [](const std::string& line) { log_line(LogLevel::kNotice, line); }});
    return Done{};
  }
  void settle(const Now&) override { proxy_.begin_calls(); }
  void record_iteration(uint64_t) override {}
  void stop(bool) override { proxy_.close(); }

 private:
  Proxy& proxy_;
  Server& server_;
};

// The table of options has more, for --print-config.
constexpr const char* kHelp =
    R"(Usage: holdfast proxy --servers A,B,C [options]

Serves the locks of a majority of Holdfast servers to clients of Redis: LOCK, RENEW, UNLOCK, SET with NX,
PEXPIRE, DEL, and scripts on one key. A client connects to it as to a Redis. One of three servers, or two of
five, may be down. The proxy keeps no data: any number of proxies may serve the same servers.

  --servers A,B,C     the servers, each as HOST:PORT. Over TLS: A,B,C?tls=yes&cacert=FILE. The login at the
                      servers is in HOLDFAST_USER and HOLDFAST_PASSWORD
  --server-timeout MS count a server that has not answered for so long as down; default 400
  --untimed-ttl MS    how long the servers keep a lock without a TTL; default 86400000, a day. Clients may
                      ask for TTLs of up to half of it
  --port N            the port for clients; default 7379; 0: none; auto: any
  --bind LIST         the addresses for clients; default 127.0.0.1 -::1
  --unixsocket PATH   a Unix socket for clients
  --requirepass TEXT  the password that clients must give; better in the file of --config
  --tls-port N        the port for clients with TLS; see --tls-cert-file and --tls-key-file
  --config FILE       read options from FILE, one "name = value" a line
  --check-config FILE read FILE, print its errors, and exit
  --print-config      print all options with their defaults and descriptions, as a file for --config
  --version           print the version
  --help              this text

Exit status: 0 stopped by SIGTERM, SIGINT or SHUTDOWN; 1 it cannot start, and the line says why.

  Serve the locks of three servers on this machine, and take one:
    holdfast proxy --servers 10.0.0.1:7379,10.0.0.2:7379,10.0.0.3:7379
    redis-cli -p 7379 SET nightly-backup "$HOSTNAME" NX PX 30000
  Read all options from a file:
    holdfast proxy --config /etc/holdfast/proxy.conf
)";

bool asks_for_help(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](std::string_view w) { return w == "--help" || w == "-h"; });
}

ProxySettings settings_of(const Options& options) {
  return {options.servers,
          {static_cast<int64_t>(options.server_timeout_ms)},
          {static_cast<int64_t>(options.untimed_ttl_ms)}};
}

}  // namespace

std::string help_text() { return kHelp; }

int run_proxy(int argc, char** argv) {
  if (asks_for_help(argc, argv)) return std::fputs(kHelp, stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
  set_program(Program::kProxy);
  std::unique_ptr<Proxy> proxy;
  std::unique_ptr<ProxyDoor> door;
  return run_program(argc, argv, [&](const Options& options) {
    ProgramParts parts;
    parts.refusal = check_servers(settings_of(options));
    if (!parts.refusal.empty()) return parts;
    proxy = std::make_unique<Proxy>(settings_of(options));
    parts.without_data = " for " + options.servers;
    parts.configure = [&proxy](Config& config) { config.remote = proxy->hooks(); };
    parts.add_doors = [&proxy, &door](Server& server) {
      door = std::make_unique<ProxyDoor>(*proxy, server);
      server.add_door(*door);
    };
    return parts;
  });
}

}  // namespace holdfast::proxy
