// Where a client finds its servers and how it deals with them, read from a text such as
// "h1:7379", "quorum://h1,h2:7380,[::1]:7379?timeout=50&wquorum=2", "rediss://h1?cacert=ca.pem" or
// "embedded:".
#pragma once

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
  // No Holdfast, but a Redis, which knows locks by scripts; or the first known node of a Redis Cluster.
  bool redis = false;
  bool cluster = false;
  std::vector<Address> others = {};      // of a cluster: further nodes
  std::string user = {}, password = {};  // sent where the password is not empty
  int acks = 0;                          // replicas that must acknowledge a grant,
  DurationMs ack_timeout{0};             // within this
  bool tls = false;
  std::string tls_name = {};                           // that its certificate must have; empty: the host's
  std::shared_ptr<const TlsContext> tls_context = {};  // by open_place(), while `tls`
  // "host:port", "[::1]:7379", of a cluster "h1:p1,h2:p2", "embedded", "embedded:name". No password.
  std::string text() const;
};

struct Place {
  std::vector<Address> servers;
  DurationMs server_timeout{1000};
  DurationMs min_wait{10};
  DurationMs max_wait{100};
  uint32_t max_attempts = 0;  // 0: no limit
  std::optional<RetryBackoff> backoff = {};
  size_t replicas = 1;  // rfactor
  size_t write_quorum = 1;
  size_t read_quorum = 1;
  TlsSettings tls;                         // of those servers that have it
  std::vector<std::string> names() const;  // of the servers, as Address::text() has them
};

// How many servers of a key must grant, renew or release such a lock.
size_t quorum_of(const Place& place, Mode mode);

// Throws std::invalid_argument, which says what is wrong and how it should be. Reads no file: for that,
// and before anything connects, is open_place().
Place parse_place(std::string_view text);

// The same, with the files for TLS, which are read once, and with the login of the environment for servers
// that have none in the text.
Place open_place(std::string_view text);

}  // namespace holdfast::client
