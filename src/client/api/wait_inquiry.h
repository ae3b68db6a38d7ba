// Asks the servers of a key why a wait for it lasts: LOCKS INFO, and CLIENT LIST for the holders'
// connections. It asks once the wait has lasted for a moment, and then after pauses that grow. It changes
// nothing, and the wait does not depend on it. For the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/transport.h"
#include "holdfast/client.h"

namespace holdfast {

class ClientCore;

class WaitInquiry : public std::enable_shared_from_this<WaitInquiry> {
 public:
  using Told = std::function<void(const WaitStatus&)>;
  // `owner()`: under which the wait stands in a server's queue. `client` and what both functions use must
  // outlive this.
  WaitInquiry(ClientCore& client, std::string key, std::vector<size_t> servers,
              std::function<std::string()> owner, Told told);

  // The wait stands in a server's queue now. Where no server could be reached before, they are asked soon.
  void note_queue();

 private:
  // What one server has said in this round.
  struct Seen {
    client::Value info{client::Value::Kind::kNull, 0, {}, {}};
    std::map<int64_t, std::string> connections;  // their lines of CLIENT LIST, by id
    ServerReport report;
    bool hides_connections = false;  // in later rounds, too: it has refused
  };

  void begin();
  void on_time();
  void ask_all();
  void ask(size_t i, const std::vector<std::string>& argv,
           void (WaitInquiry::*hear)(size_t, client::Value));
  void hear_info(size_t i, client::Value value);
  void hear_connections(size_t i, client::Value value);
  void note_answered();
  void tell();
  WaitStatus status() const;

  ClientCore& client_;
  const std::string key_;
  const std::vector<size_t> servers_;
  const std::function<std::string()> owner_;
  const Told told_;
  std::vector<Seen> seen_;
  uint64_t round_ = 0;    // of the answers that count
  size_t open_ = 0;       // servers that have not answered; 0: none was asked
  bool first_ = true;     // this round
  bool late_ = false;     // and only servers without an answer are left to tell of
  bool reached_ = false;  // some server, in the last round
  DurationMs pause_;
  client::LoopTimer timer_;
};

}  // namespace holdfast
