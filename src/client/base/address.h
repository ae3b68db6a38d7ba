// Parses the addresses of a client's servers, with timeouts and other settings, from a text such as
// "h1:7379", "quorum://h1,h2:7380,[::1]:7379?timeout=50&wquorum=2", "rediss://h1?cacert=ca.pem" or
// "embedded:".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"
#include "holdfast/client.h"
#include "tls/tls_context.h"

namespace holdfast::client {

inline constexpr int kDefaultPort = 7379;
inline constexpr int kRedisPort = 6379;

struct Address {
  std::string host;
  int port = kDefaultPort;
  bool embedded = false;  // inside this process; `host` is its name, and may be empty
  // The server is a Redis, on which scripts implement the locks, not a Holdfast server. With `cluster`, it
  // is the first known node of a Redis Cluster.
  bool redis = false;
  bool cluster = false;
  std::vector<Address> others = {};      // further nodes of a cluster
  std::string user = {}, password = {};  // sent where the password is not empty
  int acks = 0;                          // number of replicas that must acknowledge a grant
  DurationMs ack_timeout{0};             // time limit for that
  bool tls = false;
  std::string tls_name = {};                           // required in the certificate; empty: the host
  std::shared_ptr<const TlsContext> tls_context = {};  // set by client_config_of() if `tls`
  bool resp3 = false;                                  // the connection gets pushes: HELLO 3
  std::string client_name = {};  // set by CLIENT SETNAME on each connection; empty: no name
  // Called when a connection opens, and when one breaks or cannot be opened. May be empty.
  std::function<void(bool open)> on_connection = {};
  // Returns "host:port", "[::1]:7379", "h1:p1,h2:p2" for a cluster, "embedded" or "embedded:name". Never
  // contains the password.
  std::string text() const;
};

struct ClientConfig {
  std::vector<Address> servers;
  DurationMs server_timeout{1000};
  DurationMs min_wait{10};
  DurationMs max_wait{100};
  uint32_t max_attempts = 0;  // 0: no limit
  std::optional<RetryBackoff> backoff = {};
  size_t replicas = 1;  // rfactor
  size_t write_quorum = 1;
  size_t read_quorum = 1;
  TlsSettings tls;                         // for the servers with `tls`
  std::vector<std::string> names() const;  // Address::text() of each server
};

// Returns the number of a key's servers that must grant, renew or release a lock of this mode.
size_t quorum_of(const ClientConfig& config, Mode mode);

// Parses `text`. Throws std::invalid_argument with the mistake and its correction. Reads no file: call
// client_config_of() before a connection is made.
ClientConfig parse_address(std::string_view text);

// As parse_address(). Also reads the files for TLS, once. A server without a login in the text gets the
// login of the environment.
ClientConfig client_config_of(std::string_view text);

}  // namespace holdfast::client
