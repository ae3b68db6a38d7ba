// Reads the state of all servers for `holdfast top`, without blocking. Each server has at most one round of
// requests at a time, so a slow server delays no other.
//
// A round has a bounded number of requests: INFO, LOCKS TOP, up to kMaxPages pages of LOCKS LIST, up to
// kMaxDetails LOCKS INFO for the ages and waits of the most contended locks, and one for the shown queue.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/servers.h"
#include "cli/top_state.h"

namespace holdfast {

// What top reads of each server.
struct TopQuery {
  int64_t database = 0;
  std::string pattern;    // for LOCKS LIST MATCH; empty: all locks
  std::string queue_key;  // the lock whose queue is shown; empty: none
};

class TopPoll {
 public:
  static constexpr size_t kTopKeys = 100;
  static constexpr size_t kListRows = 100;   // no further page is read from here on
  static constexpr size_t kListPage = 1000;  // keys scanned by one request
  static constexpr size_t kMaxPages = 8;
  static constexpr size_t kMaxDetails = 100;
  static constexpr int64_t kMaxDetailWaiters = 10000;  // in all these replies; LOCKS INFO shows all waiters

  // `servers` must outlive this object's last callback: destroy it first.
  explicit TopPoll(Servers& servers);

  // Readable when there is news: the end of a round, or an outcome. drain() resets it.
  int fd() const;
  void drain() const;

  // Starts a round at each server that has none.
  void refresh(const TopQuery& query);
  bool is_settled() const;  // no round is open
  std::vector<ServerState> states() const;

  // Sends LOCKS BREAK or REVOKE to all servers of the key. take_outcome() returns the result as one line,
  // when all have answered; empty before that.
  void change(const std::string& subcommand, const std::string& key, int64_t database);
  std::string take_outcome();

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace holdfast
