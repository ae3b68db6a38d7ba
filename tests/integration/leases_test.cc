// Leases of the C++ library in real servers: collisions, races, lost replies, servers that are stopped or
// killed.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "holdfast/lease.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

using Program = holdfast::Client;
using State = Lease::State;
using Verdict = holdfast::Outcome;
using namespace std::chrono_literals;

const std::vector<Document> kTwo{{"a", "1"}, {"b", "2"}};

std::string place_of(const Server& server, const std::string& settings = "") {
  return "holdfast://127.0.0.1:" + std::to_string(server.port()) + settings;
}

// A server, a program with leases in it, and a client that inspects the server.
struct Rig {
  explicit Rig(const std::string& settings = "") : program(place_of(server, settings)) {}
  std::string ask(const std::string& line) { return control.ask(line); }
  void signal(int number) const { kill(server.pid(), number); }

  Server server;
  Program program;
  Leases leases{program};
  Client control{server};
};

// Stops the server while `work` runs. After that, the server processes the requests that it got meanwhile.
template <class Work>
void while_stopped(const Rig& rig, Work work) {
  rig.signal(SIGSTOP);
  work();
  rig.signal(SIGCONT);
}

}  // namespace

TEST_CASE("leases: confirmed documents stay, and their etag is the lease's token") {
  Rig rig;
  Lease lease = rig.leases.lease(kTwo, 60s).value();
  CHECK(lease.is_granted());
  CHECK(lease.validity() > 50s);
  CHECK(lease.validity() < 60s);
  CHECK(rig.ask("GET a") == "\"1\"");
  CHECK(rig.ask("PTTL b") != "-1");
  const std::vector<uint64_t> etags = lease.confirm().value();
  REQUIRE(etags.size() == 2);
  CHECK(etags[0] > 0);
  CHECK(etags[0] == etags[1]);
  CHECK(lease.documents().at(1).etag == etags[1]);
  CHECK(lease.is_confirmed());
  CHECK(rig.ask("GET b") == "\"2\"");
  CHECK(rig.ask("PTTL a") == "-1");
  CHECK(lease.confirm().outcome == Verdict::kLeaseConfirmed);
  CHECK(lease.cancel().outcome == Verdict::kLeaseConfirmed);
  CHECK(rig.ask("DEL a b") == "2");
  const std::vector<uint64_t> later = rig.leases.lease(kTwo)->confirm().value();
  CHECK(later[0] > etags[0]);
}

TEST_CASE("leases: a collision names all keys that are not free, and writes no document") {
  Rig rig;
  rig.ask("SET a x");
  rig.ask("LOCK d somebody 60000");
  const Result<Lease> lease = rig.leases.lease({{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}});
  CHECK(lease.outcome == Verdict::kBusy);
  CHECK(lease.keys == std::vector<std::string>{"a", "d"});
  CHECK_FALSE(lease.cause);
  CHECK(rig.ask("EXISTS b c") == "0");
}

TEST_CASE("leases: cancelled documents are deleted at once") {
  Rig rig;
  Lease lease = rig.leases.lease(kTwo).value();
  CHECK(lease.cancel().ok());
  CHECK(lease.is_cancelled());
  CHECK(rig.ask("EXISTS a b") == "0");
  CHECK(lease.cancel().outcome == Verdict::kLeaseCancelled);
  CHECK(lease.renew().outcome == Verdict::kLeaseCancelled);
}

TEST_CASE("leases: renewed documents live longer than their first TTL") {
  Rig rig;
  Lease lease = rig.leases.lease(kTwo, 60s).value();
  CHECK(lease.renew(200s).ok());
  CHECK(lease.validity() > 150s);
  CHECK(std::stoll(rig.ask("PTTL b")) > 150000);
  CHECK(lease.renew(60s).ok());
  CHECK(std::stoll(rig.ask("PTTL a")) <= 60000);
  CHECK(lease.validity() <= 60s);
}

TEST_CASE("leases: a lease expires in the client no later than in the server") {
  Rig rig;
  Lease lease = rig.leases.lease(kTwo, 300ms).value();
  until("the documents have expired", [&] { return rig.ask("EXISTS a b") == "0"; });
  CHECK(lease.is_expired());
  CHECK(lease.confirm().outcome == Verdict::kExpired);
  CHECK(lease.renew().outcome == Verdict::kExpired);
  CHECK(lease.cancel().ok());
  CHECK(lease.is_expired());
}

TEST_CASE("leases: overwriting or deleting a document ends the lease, and deletes its other documents") {
  Rig rig;
  Lease one = rig.leases.lease(kTwo, 60s).value();
  rig.ask("SET a other");
  CHECK(one.confirm().outcome == Verdict::kExpired);
  CHECK(one.is_expired());
  CHECK(rig.ask("GET a") == "\"other\"");
  CHECK(rig.ask("EXISTS b") == "0");
  rig.ask("DEL a");
  Lease two = rig.leases.lease(kTwo, 60s).value();
  rig.ask("DEL b");
  CHECK(two.renew().outcome == Verdict::kExpired);
  CHECK(rig.ask("EXISTS a b") == "0");
}

TEST_CASE("leases: keys and values may be any bytes, and empty") {
  Rig rig;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string large(300000, '\xff');
  Lease lease = rig.leases.lease({{bytes, bytes}, {"empty", ""}, {"large", large}}).value();
  CHECK(lease.confirm().ok());
  Redis redis("127.0.0.1", rig.server.port());
  CHECK(redis.ask({"STRLEN", bytes}) == "256");
  CHECK(redis.ask({"STRLEN", "empty"}) == "0");
  CHECK(redis.ask({"STRLEN", "large"}) == "300000");
  CHECK(rig.leases.lease({{bytes, ""}}).outcome == Verdict::kBusy);
}

TEST_CASE("leases: exactly one of the programs that race for overlapping documents gets them") {
  Rig rig;
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> granted = 0;
    std::atomic<int> collided = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        Program program(place_of(rig.server));
        const std::string own = "own" + std::to_string(i);
        Result<Lease> lease = Leases(program).lease({{own, ""}, {"shared", own}}, 60s);
        if (lease.outcome == Verdict::kBusy) ++collided;
        if (lease && lease->confirm()) ++granted;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(granted == 1);
    CHECK(collided == 3);
    CHECK(rig.ask("DBSIZE") == "2");
    rig.ask("FLUSHALL");
  }
}

TEST_CASE("leases: a lease that is destroyed unconfirmed is cancelled, even if its client ends at once") {
  Rig rig;
  { const Lease lease = rig.leases.lease(kTwo, 1h).value(); }
  until("the documents are deleted", [&] { return rig.ask("EXISTS a b") == "0"; });
  for (int i = 0; i < 20; ++i) {
    {
      Program program(place_of(rig.server));
      const Lease lease = Leases(program).lease(kTwo, 1h).value();
    }
    CHECK(rig.ask("EXISTS a b") == "0");
  }
}

TEST_CASE(
    "leases: a lease that is destroyed while its connection is cut is cancelled on the next connection") {
  Rig rig("?timeout=500");
  for (int i = 0; i < 10; ++i) {
    std::optional<Lease> lease;
    until("a grant", [&] {
      if (Result<Lease> granted = rig.leases.lease(kTwo, 1h)) lease = *std::move(granted);
      return lease.has_value();
    });
    rig.control.send("CLIENT KILL TYPE normal SKIPME yes\r\n");
    lease.reset();
    CHECK(rig.control.reply() != "0");
    until("the documents are deleted", [&] { return rig.ask("EXISTS a b") == "0"; });
  }
}

TEST_CASE("leases: if the client is destroyed first, the documents expire at their TTL") {
  Rig rig;
  std::optional<Lease> lease;
  {
    Program program(place_of(rig.server));
    lease = Leases(program).lease(kTwo, 500ms).value();
  }
  CHECK(lease->renew().outcome == Verdict::kCancelled);
  CHECK(lease->confirm().outcome == Verdict::kCancelled);
  CHECK(lease->state() == State::kInDoubt);
  lease.reset();
  until("the documents have expired", [&] { return rig.ask("EXISTS a b") == "0"; });
}

TEST_CASE("leases: a grant whose reply is lost leaves no documents") {
  Rig rig("?timeout=100");
  CHECK(rig.leases.lease({{"other", ""}})->confirm().ok());  // connected
  while_stopped(rig, [&] {
    const Result<Lease> lease = rig.leases.lease(kTwo, 1h);
    CHECK(lease.outcome == Verdict::kUnreachable);
    CHECK(lease.message.find("no answer in 100 ms") != std::string::npos);
    CHECK(lease.servers.at(0).outcome == Verdict::kUnreachable);
  });
  until("the lease was granted and cancelled",
        [&] { return info(rig.control, "locks", "lease_outcomes") == 2; });
  CHECK(rig.ask("EXISTS a b") == "0");
}

TEST_CASE("leases: a confirm whose reply is lost is in doubt, and succeeds if repeated") {
  Rig rig("?timeout=100");
  Lease lease = rig.leases.lease(kTwo, 60s).value();
  while_stopped(rig, [&] {
    CHECK(lease.confirm().outcome == Verdict::kUnreachable);
    CHECK(lease.state() == State::kInDoubt);
    CHECK(lease.renew().outcome == Verdict::kUnreachable);
  });
  until("the lease is confirmed", [&] { return rig.ask("PTTL a") == "-1"; });
  std::vector<uint64_t> etags;
  until("a reply", [&] {
    const auto confirmed = lease.confirm();
    if (confirmed) etags = *confirmed;
    return confirmed.ok();
  });
  CHECK(lease.is_confirmed());
  CHECK(etags.at(0) == lease.documents().at(0).etag);
  CHECK(lease.confirm().outcome == Verdict::kLeaseConfirmed);
}

TEST_CASE("leases: a cancel after a confirm whose reply was lost reports that the lease is confirmed") {
  Rig rig("?timeout=100");
  Lease lease = rig.leases.lease(kTwo, 60s).value();
  while_stopped(rig, [&] { CHECK(lease.confirm().outcome == Verdict::kUnreachable); });
  until("the lease is confirmed", [&] { return rig.ask("PTTL a") == "-1"; });
  until("a reply", [&] { return lease.cancel().outcome == Verdict::kLeaseConfirmed; });
  CHECK(lease.is_confirmed());
  CHECK(rig.ask("EXISTS a b") == "2");
}

TEST_CASE("leases: a connection that is cut between requests does not end the lease") {
  Rig rig;
  Lease lease = rig.leases.lease(kTwo, 60s).value();
  CHECK(rig.ask("CLIENT KILL TYPE normal SKIPME yes") != "0");
  until("a reply", [&] { return lease.renew().ok(); });
  CHECK(lease.confirm()->size() == 2);
}

TEST_CASE("leases: a killed server is reported, and a lease in doubt stays in doubt") {
  Rig rig("?timeout=500");
  Lease confirmed = rig.leases.lease({{"x", ""}}, 60s).value();
  Lease cancelled = rig.leases.lease(kTwo, 60s).value();
  rig.server.stop(SIGKILL);
  CHECK(confirmed.confirm().outcome == Verdict::kUnreachable);
  CHECK(confirmed.confirm().outcome == Verdict::kUnreachable);
  CHECK(confirmed.state() == State::kInDoubt);
  CHECK(cancelled.renew().outcome == Verdict::kUnreachable);
  CHECK(cancelled.is_granted());
  CHECK(cancelled.cancel().outcome == Verdict::kUnreachable);
  CHECK(cancelled.confirm().outcome == Verdict::kLeaseCancelled);
  CHECK(rig.leases.lease({{"y", ""}}).outcome == Verdict::kUnreachable);
}

TEST_CASE("leases: a lease that another client ended by its id reports confirm and cancel differently") {
  Rig rig;
  const auto others = [&](const std::string& verb) {
    rig.ask("FLUSHALL");
    Client monitor(rig.server);
    CHECK(monitor.ask("MONITOR") == "+OK");
    Lease lease = rig.leases.lease(kTwo, 60s).value();
    std::string line;
    while (line.find("GRANT") == std::string::npos) line = monitor.reply();
    const size_t at = line.find("GRANT\\\" \\\"") != std::string::npos ? line.find("GRANT\\\" \\\"") + 10
                                                                       : line.find("GRANT\" \"") + 8;
    CHECK(rig.ask("LEASE " + verb + " " + line.substr(at, 32)).find('-') != 0);
    return lease;
  };
  Lease one = others("CONFIRM");
  CHECK(one.confirm().outcome == Verdict::kLeaseConfirmed);
  CHECK(one.is_confirmed());
  Lease two = others("CANCEL");
  CHECK(two.confirm().outcome == Verdict::kLeaseCancelled);
  CHECK(two.is_cancelled());
}

TEST_CASE("leases: one of several threads that confirm one lease succeeds, and state() works meanwhile") {
  Rig rig;
  Lease lease = rig.leases.lease(kTwo, 60s).value();
  std::atomic<int> done = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  rig.signal(SIGSTOP);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const auto status = lease.confirm();
      if (status) ++done;
      if (status.outcome == Verdict::kLeaseConfirmed) ++refused;
    });
  }
  until("a confirm is under way", [&] { return lease.state() == State::kInDoubt; });
  rig.signal(SIGCONT);
  for (std::thread& thread : threads) thread.join();
  CHECK(done == 1);
  CHECK(refused == 2);
}

TEST_CASE(
    "leases: a callback of the client may not wait for a lease, and a client of a quorum has no leases") {
  Rig rig;
  Lease lease = rig.leases.lease(kTwo, 60s).value();
  std::promise<bool> refused;
  rig.program.try_lock_async("k", {}, [&](const Result<Hold>&) {
    try {
      static_cast<void>(lease.confirm());
      refused.set_value(false);
    } catch (const std::logic_error&) {
      refused.set_value(true);
    }
  });
  CHECK(refused.get_future().get());
  CHECK(lease.is_granted());
  Program quorum("quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3");
  CHECK_THROWS_AS(Leases{quorum}, std::invalid_argument);
}

TEST_CASE("leases: a child of fork() may not use its parent's lease, and leaves it unharmed") {
  Rig rig;
  auto lease = std::make_unique<Lease>(rig.leases.lease(kTwo, 60s).value());
  const pid_t child = fork();
  if (child == 0) {
    int right = 0;
    const auto forbidden = [&](const auto& call) {
      try {
        call();
      } catch (const std::logic_error&) {
        ++right;
      }
    };
    forbidden([&] { static_cast<void>(lease->confirm()); });
    forbidden([&] { static_cast<void>(lease->cancel()); });
    forbidden([&] { static_cast<void>(lease->state()); });
    forbidden([&] { static_cast<void>(rig.leases.lease({{"c", ""}})); });
    lease.reset();
    _exit(right);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 4);
  CHECK(lease->is_granted());
  CHECK(lease->confirm()->size() == 2);
}

}  // namespace holdfast::integration
