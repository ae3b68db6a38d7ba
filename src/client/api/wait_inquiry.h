// Asks the servers of a key for the reason of a long wait: LOCKS INFO, and CLIENT LIST for the holders'
// connections. The first inquiry comes 300 ms after the start of the wait, the next ones after growing
// pauses. It changes nothing, and the wait does not depend on it. For the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/transport/transport.h"
#include "holdfast/client.h"

namespace holdfast {

class ClientCore;

class WaitInquiry : public std::enable_shared_from_this<WaitInquiry> {
 public:
  using OnStatus = std::function<void(const WaitStatus&)>;
  // `owner()` returns the owner of the queued request; `on_status` gets each status. `client`, and the
  // objects that both functions use, must outlive this object.
  WaitInquiry(ClientCore& client, std::string key, std::vector<size_t> servers,
              std::function<std::string()> owner, OnStatus on_status);

  // A server has queued the request. If the last inquiry reached no server, the next one starts soon.
  void record_queue();

 private:
  // The replies of one server in this round.
  struct Seen {
    client::Value info{client::Value::Kind::kNull, 0, {}, {}};
    std::map<int64_t, std::string> connections;  // lines of CLIENT LIST, by connection id
    ServerReport report;
    bool hides_connections = false;  // it rejected CLIENT LIST; kept for later rounds
  };

  void begin();
  void on_time();
  void ask_all();
  void ask(size_t i, const std::vector<std::string>& argv,
           void (WaitInquiry::*receive)(size_t, client::Value));
  void receive_info(size_t i, client::Value value);
  void receive_connections(size_t i, client::Value value);
  void note_answered();
  void report();
  WaitStatus status() const;
  bool is_own(std::string_view owner) const;

  ClientCore& client_;
  const std::string key_;
  const std::vector<size_t> servers_;
  const std::function<std::string()> owner_;
  const OnStatus report_;
  std::vector<Seen> seen_;
  uint64_t round_ = 0;    // answers of other rounds are ignored
  size_t open_ = 0;       // servers that have not answered; 0: no round is in progress
  bool first_ = true;     // this is the first round
  bool late_ = false;     // the first timeout passed without any answer
  bool reached_ = false;  // the last round reached a server
  DurationMs pause_;
  client::LoopTimer timer_;
};

}  // namespace holdfast
