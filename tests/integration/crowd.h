// Many connections in one loop, for tests that check which connection gets which reply, and in which order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "server_harness.h"

namespace holdfast::integration {

// Lets this process open this many files. Throws std::runtime_error if the system does not allow it.
void allow_open_files(rlim_t files);

// A reply, or "(closed)", and the number of its connection.
struct Heard {
  size_t who;
  std::string reply;
};

class Crowd {
 public:
  Crowd(const Server& server, size_t size);

  size_t size() const { return members_.size(); }
  // Requests must be short: they always fit into the socket's buffer.
  void send(size_t who, std::string_view line);
  // The next reply on any connection, in the order of arrival. nullopt: no reply came until the deadline.
  std::optional<Heard> hear(Clock::time_point deadline);
  // The same for a reply that must come. Throws std::runtime_error after kPatience.
  Heard hear();
  // Whether no connection has more replies. This is conclusive only after another client got a reply to a
  // later request.
  bool heard_nothing() { return !hear(Clock::now()); }
  void close(size_t who) { members_[who].socket.close(); }
  void reset(size_t who);

 private:
  struct Member {
    Fd socket;
    std::string inbox;
  };
  void read(size_t who);

  Fd poll_;
  std::vector<Member> members_;
  std::vector<Heard> heard_;  // replies to return, from next_ on
  size_t next_ = 0;
};

}  // namespace holdfast::integration
