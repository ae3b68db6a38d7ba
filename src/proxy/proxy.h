// The proxy beside the server that has its loop: the hooks of its engine, and its servers. This header is
// for files that include those of src/io.
#pragma once

#include <memory>
#include <string>

#include "core/base/remote_keys.h"
#include "core/base/types.h"
#include "proxy/shell.h"

struct uv_loop_s;

namespace holdfast::proxy {

struct ProxySettings {
  std::string servers;  // as --servers
  DurationMs server_timeout{400};
  DurationMs untimed_ttl{86'400'000};
};

// Returns why the proxy cannot use these servers; empty if it can. Reads the files that the text names.
std::string check_servers(const ProxySettings& settings);

class Proxy {
 public:
  // The settings must have passed check_servers().
  explicit Proxy(const ProxySettings& settings);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // The hooks for the engine's Config.
  RemoteHooks hooks();
  // Begins to connect, before the first request. `loop` must run until close() has closed all handles.
  void start(uv_loop_s& loop, Shell shell);
  // The end of a loop iteration: begins the requests that came in it.
  void begin_calls();
  void close();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace holdfast::proxy
