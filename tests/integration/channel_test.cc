// The connections for tickets to one server, whose replies the test sends: which connection takes requests,
// which answers count, and what a wait hears of pushes, breaks and restarts.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "client/transport/channel.h"
#include "integration/client.h"
#include "integration/listener.h"
#include "integration/transport_rig.h"

namespace holdfast::integration {
namespace {

using namespace client;

constexpr const char* kHello = "%1\r\n+proto\r\n:3\r\n";
constexpr const char* kRun = "*2\r\n$3\r\nrun\r\n:1000\r\n";

// A wait that tells the test what it hears, as "answer 0 yes 7".
class Waiter final : public ChannelUser {
 public:
  explicit Waiter(Inbox<std::string>& inbox) : inbox_(inbox) {}
  void answered(const Asked& asked, const Answer& answer) override {
    std::string text = "answer " + std::to_string(asked.server) + " ";
    if (const auto* refusal = std::get_if<Refusal>(&answer)) text += refusal->text;
    if (const auto* count = std::get_if<Count>(&answer)) text += std::to_string(count->number);
    if (const auto* wait = std::get_if<WaitAnswer>(&answer)) text += "token " + std::to_string(wait->token);
    inbox_.put(text);
  }
  void pushed(size_t server, const Push& push) override {
    const auto* vote = std::get_if<VotePush>(&push);
    inbox_.put("push " + std::to_string(server) +
               (vote != nullptr ? " vote " + std::to_string(vote->token) : " inquire"));
  }
  void reconnected(size_t server) override { inbox_.put("connection " + std::to_string(server)); }
  void restarted(size_t server) override { inbox_.put("restart " + std::to_string(server)); }
  DurationUs heartbeat_every() const override { return every; }
  DurationUs patience() const override { return silence; }

  DurationUs every = kForeverUs;
  DurationUs silence = kForeverUs;

 private:
  Inbox<std::string>& inbox_;
};

// A channel to a listener, with one wait for key k of slot s.
struct Rig3 {
  explicit Rig3(DurationUs every = kForeverUs, DurationUs silence = kForeverUs) {
    run_on(loop, [&] {
      channel = std::make_unique<Channel>(loop, Address{"127.0.0.1", listener.port()});
      waiter = std::make_shared<Waiter>(news);
      waiter->every = every;
      waiter->silence = silence;
      channel->join("k", "s", 2, waiter);
    });
  }
  ~Rig3() {
    run_on(loop, [&] {
      channel.reset();
      waiter.reset();
    });
  }
  void send(const TicketRequest& request) {
    LockTerms terms;
    terms.key = "k";
    run_on(loop, [&] { channel->send(waiter, {2, request, Loop::time_us()}, terms); });
  }
  // Accepts the next connection, and answers its introduction and its first heartbeat.
  Client accept(const std::string& run = kRun) {
    Client peer = listener.accept();
    CHECK(peer.reply() == R"(["HELLO", "3"])");
    CHECK(peer.reply().starts_with(R"(["LOCKS", "HEARTBEAT")"));
    peer.send(kHello + run);
    return peer;
  }
  Channel::Tickets tickets() {
    Channel::Tickets known{};
    run_on(loop, [&] { known = channel->tickets(); });
    return known;
  }

  Listener listener;
  Inbox<std::string> news;
  Loop loop;
  std::unique_ptr<Channel> channel;
  std::shared_ptr<Waiter> waiter;
};

const UnlockRequest kUnlock{"s.1"};
constexpr DurationUs kSoon{50'000};

TEST_CASE(
    "channel: the first request opens the connection, which begins with the protocol and a heartbeat") {
  Rig3 rig;
  rig.send(kUnlock);
  Client peer = rig.accept();
  CHECK(peer.reply() == R"(["UNLOCK", "k", "s.1"])");
  peer.send(":1\r\n");
  CHECK(rig.news.take() == "answer 2 1");
  CHECK(rig.tickets() == Channel::Tickets::kKnown);
}

TEST_CASE("channel: a server without tickets is known by its answer to the heartbeat") {
  Rig3 rig;
  rig.send(kUnlock);
  Client peer = rig.accept("-ERR unknown subcommand 'HEARTBEAT'\r\n");
  peer.send(":0\r\n");
  CHECK(rig.news.take() == "answer 2 0");
  CHECK(rig.tickets() == Channel::Tickets::kNotKnown);
}

TEST_CASE("channel: a server without tickets is known by its answer to a request of a wait, too") {
  Rig3 rig;
  rig.send(WaitRequest{});
  Client peer = rig.accept();
  peer.send("-ERR syntax error\r\n");
  CHECK(rig.news.take() == "answer 2 ERR syntax error");
  CHECK(rig.tickets() == Channel::Tickets::kNotKnown);
}

TEST_CASE("channel: a push goes to the wait of its key and slot; another one is answered by UNLOCK") {
  Rig3 rig;
  rig.send(kUnlock);
  Client peer = rig.accept();
  peer.reply();
  peer.send(">5\r\n+lock\r\n+inquire\r\n+k\r\n+s.1\r\n:7\r\n");
  CHECK(rig.news.take() == "push 2 inquire");
  peer.send(">9\r\n+lock\r\n+vote\r\n+k\r\n+s.2\r\n:8\r\n:1001\r\n:1002\r\n:5\r\n*0\r\n:1\r\n");
  CHECK(rig.news.take() == "push 2 vote 8");
  CHECK(rig.news.take() == "answer 2 1");
  peer.send(">5\r\n+lock\r\n+inquire\r\n+k\r\n+other.4\r\n:7\r\n");
  CHECK(peer.reply() == R"(["UNLOCK", "k", "other.4"])");
}

TEST_CASE("channel: a silent server gets a second connection; the one that answers stays alone") {
  Rig3 rig(kForeverUs, {0});
  rig.send(kUnlock);
  Client silent = rig.listener.accept();
  Client second = rig.accept();
  CHECK(rig.news.take() == "connection 2");
  CHECK(silent.reply() == R"(["HELLO", "3"])");
  rig.send(kUnlock);
  CHECK(second.reply() == R"(["UNLOCK", "k", "s.1"])");
  second.send(":1\r\n");
  CHECK(rig.news.take() == "answer 2 1");
  while (silent.reply() != "(closed)") continue;
  silent.send(std::string(kHello) + kRun + ":9\r\n");
  rig.send(kUnlock);
  second.reply();
  second.send(":3\r\n");
  CHECK(rig.news.take() == "answer 2 3");
}

TEST_CASE("channel: heartbeats have the newest time of the server, and show its restart") {
  Rig3 rig(kSoon, {2'000'000});
  rig.send(kUnlock);
  Client peer = rig.accept();
  peer.reply();
  peer.send(":1\r\n");
  CHECK(rig.news.take() == "answer 2 1");
  CHECK(peer.reply() == R"(["LOCKS", "HEARTBEAT", "1000"])");
  peer.send("*2\r\n$5\r\nother\r\n:20\r\n");
  CHECK(rig.news.take() == "restart 2");
  CHECK(peer.reply() == R"(["LOCKS", "HEARTBEAT", "20"])");
}

TEST_CASE("channel: a broken connection loses its requests, and a waiting client connects again at once") {
  Rig3 rig({60'000'000}, {60'000'000});
  rig.send(kUnlock);
  {
    Client peer = rig.accept();
    peer.reply();
    peer.send(":1\r\n");
    CHECK(rig.news.take() == "answer 2 1");
    rig.send(kUnlock);
    peer.reply();
  }
  CHECK(rig.news.take() == "answer 2 server closed the connection");
  Client again = rig.accept();
  CHECK(rig.news.take() == "connection 2");
}

TEST_CASE("channel: a request to a server that refuses connections is lost, but not within send()") {
  Inbox<std::string> news;
  Loop loop;
  std::unique_ptr<Channel> channel;
  std::shared_ptr<Waiter> waiter;
  const int port = free_port();
  run_on(loop, [&] {
    channel = std::make_unique<Channel>(loop, Address{"127.0.0.1", port});
    waiter = std::make_shared<Waiter>(news);
    for (int i = 0; i < 3; ++i) {
      channel->send(waiter, {0, kUnlock, Loop::time_us()}, {});
      CHECK(news.empty());
    }
  });
  for (int i = 0; i < 3; ++i) CHECK(news.take() == "answer 0 connection refused");
  run_on(loop, [&] {
    channel.reset();
    waiter.reset();
  });
}

TEST_CASE("channel: a wait that has ended gets no answer and no push") {
  Rig3 rig;
  rig.send(kUnlock);
  Client peer = rig.accept();
  peer.reply();
  run_on(rig.loop, [&] {
    rig.channel->leave("k", "s", *rig.waiter);
    rig.waiter.reset();
  });
  peer.send(":1\r\n>5\r\n+lock\r\n+inquire\r\n+k\r\n+s.1\r\n:7\r\n");
  CHECK(peer.reply() == R"(["UNLOCK", "k", "s.1"])");
  CHECK(rig.news.empty());
}

}  // namespace
}  // namespace holdfast::integration
