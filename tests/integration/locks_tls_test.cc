// The library over TLS, on Holdfast, on stock Redis and on a Redis cluster. All servers require a
// certificate of their clients.
#include <doctest/doctest.h>

#include <csignal>
#include <future>
#include <memory>
#include <string>

#include "files/certificates.h"
#include "integration/listener.h"
#include "integration/redis_rig.h"

namespace holdfast::integration {
namespace {

// A Redis server with a TLS port, and a plain port by which tests inspect it.
class TlsRedis {
 public:
  explicit TlsRedis(const Certificates& certificates, int tls_port = 0, const Words& more = {},
                    const std::string& name = "server")
      : tls_port_(tls_port != 0 ? tls_port : free_port()) {
    Words args{"--tls-port",      std::to_string(tls_port_), "--tls-ca-cert-file", certificates.pem("ca"),
               "--tls-cert-file", certificates.pem(name),    "--tls-key-file",     certificates.key(name)};
    args.insert(args.end(), more.begin(), more.end());
    redis_ = std::make_unique<RedisProcess>(args);
  }
  RedisProcess& plain() { return *redis_; }
  int port() const { return tls_port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(tls_port_); }

 private:
  int tls_port_;
  std::unique_ptr<RedisProcess> redis_;
};

// A Holdfast server with a TLS port, and a plain port by which tests inspect it.
class TlsServer {
 public:
  explicit TlsServer(const Certificates& certificates, const std::string& port = "auto")
      : server_({"--tls-port", port, "--tls-ca-cert-file", certificates.pem("ca"), "--tls-cert-file",
                 certificates.pem("server"), "--tls-key-file", certificates.key("server")}),
        plain_(server_) {
    const std::string log = server_.log().text();
    const size_t end = log.find(" (TLS)");
    REQUIRE(end != std::string::npos);
    port_ = log.substr(log.rfind(':', end) + 1, end - log.rfind(':', end) - 1);
  }
  const std::string& port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + port_; }
  Client& plain() { return plain_; }
  void kill() { server_.stop(SIGKILL); }

 private:
  Server server_;
  Client plain_;
  std::string port_;
};

struct Set {
  Set() { certificates.issue("server"); }
  std::string settings() const {
    return "?cacert=" + certificates.pem("ca") + "&cert=" + certificates.pem("server") +
           "&key=" + certificates.key("server");
  }
  Certificates certificates;
};

TEST_CASE("holdfast over tls: a waiter is granted when the holder releases") {
  const Set set;
  TlsServer server(set.certificates);
  Locks locks("holdfasts://" + server.address() + set.settings());
  Result<Hold> first = locks.lock("k");
  REQUIRE(first.ok());
  std::future<Result<Hold>> second = locks.lock_future("k");
  until_waiting(server.plain(), 1);
  CHECK(first->unlock().ok());
  CHECK(second.get()->token() > 1);
}

TEST_CASE("holdfast over tls: the holder of a broken lock is notified") {
  const Set set;
  TlsServer server(set.certificates);
  Counter lost;
  Locks locks("holdfasts://" + server.address() + set.settings());
  LockOptions options;
  options.on_lost = [&](const Status&) { lost.add(); };
  const Result<Hold> lock = locks.lock("k", options);
  REQUIRE(lock.ok());
  until("the client is subscribed",
        [&] { return server.plain().ask("PUBSUB NUMSUB __lock__:k") == "[\"__lock__:k\", 1]"; });
  CHECK(server.plain().ask("LOCKS BREAK k") == "1");
  lost.await(1);
}

TEST_CASE(
    "holdfast over tls: a quorum works without one of its servers, and uses it again after its restart") {
  const Set set;
  TlsServer first(set.certificates);
  TlsServer second(set.certificates);
  const std::string port = std::to_string(free_port());
  auto third = std::make_unique<TlsServer>(set.certificates, port);
  Locks locks("quorum://" + first.address() + "," + second.address() + "," + third->address() +
              set.settings() + "&tls=yes");
  CHECK(locks.lock("k").ok());
  third->kill();
  third.reset();
  CHECK(locks.lock("k").ok());
  third = std::make_unique<TlsServer>(set.certificates, port);
  until("all three servers have the lock", [&] {
    const Result<Hold> lock = locks.lock("k");
    return third->plain().ask("EXISTS k") == "1";
  });
}

TEST_CASE("redis over tls: requests, large requests, waits and watches work") {
  const Set set;
  TlsRedis redis(set.certificates);
  Inbox<Reply> waited;
  Inbox<std::string> heard;
  Rig rig(client::client_config_of("rediss://" + redis.address() + set.settings()).servers.at(0));
  CHECK(text(rig.send({"PING"})) == "text 0 PONG");
  const std::string large(size_t{5} << 20, 'x');
  CHECK(rig.send({"ECHO", large}).text == large);
  rig.watch("__lock__:k", heard);
  CHECK(heard.take() == "");
  CHECK(rig.send({"LOCK", "k", "alice", "60000"}).kind == Kind::kGrant);
  CHECK(heard.take().starts_with("granted alice "));
  rig.wait({"LOCK", "k", "bob", "60000", "WAIT", "0"}, waited);
  until("the client is subscribed",
        [&] { return redis.plain().ask("PUBSUB NUMSUB __lock__:k").elements.at(1).integer == 1; });
  CHECK(text(rig.send({"UNLOCK", "k", "alice"})) == "integer 1 ");
  CHECK(waited.take().text == "bob");
}

TEST_CASE("redis over tls: a server with an expired certificate is rejected, except with `insecure`") {
  Set set;
  set.certificates.issue("old", "ca", -1);
  const TlsRedis redis(set.certificates, 0, {"--tls-auth-clients", "no"}, "old");
  const std::string place = "rediss://" + redis.address();
  Rig rig(client::client_config_of(place + set.settings()).servers.at(0));
  CHECK(text(rig.send({"PING"})) == "lost 0 TLS: certificate verify failed: certificate has expired");
  Rig insecure(client::client_config_of(place + "?insecure").servers.at(0));
  CHECK(text(insecure.send({"PING"})) == "text 0 PONG");
}

TEST_CASE("redis over tls: a thousand requests at once get their replies in order") {
  const Set set;
  const TlsRedis redis(set.certificates);
  Inbox<Value> inbox;
  Rig rig(client::client_config_of("rediss://" + redis.address() + set.settings()).servers.at(0));
  rig.run([&] {
    for (int i = 0; i < 1000; ++i)
      rig.link().ask({"INCR", "n"}, kLong, [&](const Value& value) { inbox.put(value); });
  });
  for (int i = 1; i <= 1000; ++i) REQUIRE(inbox.take().integer == i);
}

TEST_CASE("redis over tls: the client reconnects to a server that was killed and restarted") {
  const Set set;
  auto redis = std::make_unique<TlsRedis>(set.certificates);
  const int port = redis->port();
  Rig rig(client::client_config_of("rediss://" + redis->address() + set.settings()).servers.at(0));
  CHECK(text(rig.send({"PING"})) == "text 0 PONG");
  redis.reset();
  until("the client notices the end", [&] { return rig.send({"PING"}).kind == Kind::kLost; });
  redis = std::make_unique<TlsRedis>(set.certificates, port);
  until("the server replies", [&] { return rig.send({"PING"}).kind == Kind::kText; });
}

TEST_CASE("redis over tls: a lock works on a quorum with TLS on two of three servers") {
  const Set set;
  TlsRedis first(set.certificates);
  TlsRedis second(set.certificates);
  RedisProcess third;
  Locks locks("quorum://rediss://" + first.address() + ",rediss://" + second.address() + ",redis://" +
              third.address() + set.settings());
  Result<Hold> lock = locks.lock("k");
  REQUIRE(lock.outcome == Verdict::kOk);
  CHECK(lock->is_locked());
  for (const RedisProcess* redis : {&first.plain(), &second.plain(), &third}) {
    until("the server has the lock", [&] { return redis->ask("EXISTS k").integer == 1; });
  }
  CHECK(lock->unlock().outcome == Verdict::kOk);
}

TEST_CASE("redis over tls: the client uses TLS to a cluster node that a MOVED names") {
  const Set set;
  const Words cluster{"--cluster-enabled", "yes", "--tls-cluster", "yes"};
  TlsRedis low(set.certificates, 0, cluster);
  TlsRedis high(set.certificates, 0, cluster);
  CHECK(low.plain().ask("CLUSTER ADDSLOTSRANGE 0 8191").text == "OK");
  CHECK(high.plain().ask("CLUSTER ADDSLOTSRANGE 8192 16383").text == "OK");
  CHECK(low.plain().ask("CLUSTER MEET 127.0.0.1 " + std::to_string(high.port())).text == "OK");
  for (TlsRedis* node : {&low, &high}) {
    until("the cluster", [&] {
      return node->plain().ask("CLUSTER INFO").text.find("cluster_state:ok") != std::string::npos;
    });
  }
  Locks locks("rediss-cluster://" + low.address() + set.settings());
  for (const std::string key : {"a", "b", "c", "d"})  // keys of both nodes
    CHECK(locks.try_lock(key).outcome == Verdict::kOk);
  Locks one("rediss://" + low.address() + set.settings());
  CHECK(one.try_lock("a").outcome == Verdict::kRefused);  // "a" is on the other node
}

}  // namespace
}  // namespace holdfast::integration
