// Very many connections in one loop, for tests that ask who hears what, and in which order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "server_harness.h"

namespace holdfast::integration {

// Lets this process open so many files; throws std::runtime_error where the system does not allow it.
void allow_open_files(rlim_t files);

// A reply, or "(closed)", and on which connection it came.
struct Heard {
  size_t who;
  std::string reply;
};

class Crowd {
 public:
  Crowd(const Server& server, size_t size);

  size_t size() const { return members_.size(); }
  // Requests are short: they always fit into the socket's buffer.
  void send(size_t who, std::string_view line);
  // What anybody heard next, in the order in which it came; nothing where nobody hears anything until the
  // deadline.
  std::optional<Heard> hear(Clock::time_point deadline);
  // The same where something has to come; throws std::runtime_error after kPatience.
  Heard hear();
  // Whether nobody has heard anything more. It tells something only after a later request of somebody else
  // was answered.
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
  std::vector<Heard> heard_;  // to be returned from next_ on
  size_t next_ = 0;
};

}  // namespace holdfast::integration
