// The clients that follow /api/v1/events: what each of them gets, and when. Server-sent events (HTML
// standard): "event: NAME", "data: JSON", an empty line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/types.h"

namespace holdfast {

class Engine;
class HttpConnection;

class EventStreams {
 public:
  static constexpr size_t kMaxStreams = 16;
  // Changes that a client gets in a second. Those beyond are counted: event "dropped".
  static constexpr uint64_t kMaxChanges = 200;

  bool full() const { return streams_.size() >= kMaxStreams; }
  bool empty() const { return streams_.empty(); }
  // From now on the client gets the events, first the state. `user` is its user's name.
  void add(HttpConnection& connection, std::string user, const Engine& engine, const std::string& common);
  void remove(const HttpConnection& connection);

  // Sends the changes since the last call. Costs one comparison if there are none.
  void push_changes(const Engine& engine);
  // Once a second: the state of the server, from common_info(). Closes the clients whose user has lost the
  // permission.
  void push_info(const Engine& engine, const std::string& common);

 private:
  struct Stream {
    HttpConnection* connection;
    std::string user;
  };

  std::vector<Stream> streams_;
  uint64_t last_serial_ = 0;  // of the last event that was sent or dropped
  uint64_t sent_ = 0;         // in this second
  uint64_t dropped_ = 0;
};

}  // namespace holdfast
