// Pub/sub and tracking: their indexes, which must hold no more entries than there are messages to send.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/command/command.h"
#include "core/engine/engine_parts.h"
#include "core/events/invalidate.h"
#include "core/events/publish.h"
#include "core/state/effects.h"

namespace holdfast {
namespace {

struct World {
  World() : t{s, {{1000}, 1000000}, fx} {}

  Conn& open(int protocol) {
    Conn& c = s.conns.open();
    c.protocol = protocol;
    return c;
  }
  void subscribe(Conn& c, const std::string& channel) {
    c.channels.insert(channel);
    s.pubsub.channels[channel].emplace(c.id.serial, c.id);
  }
  void psubscribe(Conn& c, const std::string& pattern) {
    c.patterns.insert(pattern);
    s.pubsub.patterns[pattern].emplace(c.id.serial, c.id);
  }
  void get(Conn& c, std::string_view key) {
    const std::string_view argv[] = {"get", key};
    remember_reads(t, c, *find_command("get"), argv);
  }

  EngineParts parts{Config{}};
  EngineState& s = parts.state;
  Effects fx;
  Context t;
};

std::string received(Conn& c) {
  const std::string text(c.out.view());
  c.out.consume(c.out.size());
  return text;
}

}  // namespace

TEST_CASE("pub/sub: a message is sent by channel and by each pattern, in the form of each protocol") {
  World w;
  Conn& two = w.open(2);
  Conn& three = w.open(3);
  w.subscribe(two, "news");
  w.subscribe(three, "news");
  w.psubscribe(three, "n*");
  CHECK(publish(w.t, "news", "hi") == 3);
  CHECK(received(two) == "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
  CHECK(received(three) ==
        ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"
        ">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
  CHECK(publish(w.t, "other", "hi") == 0);
  CHECK(publish_to_shard(w.t, "news", "hi") == 0);
  CHECK(w.fx.dirty.size() == 2);
}

TEST_CASE("pub/sub: finds all patterns that may match, each once and in their order") {
  World w;
  Conn& c = w.open(3);
  for (const char* pattern : {"*", "**", "?b", "[a-c]b", "\\ab", "ab", "a*", "b*", "", "z"}) {
    w.psubscribe(c, pattern);
  }
  const auto matching_patterns = [&](const char* channel) {
    publish(w.t, channel, "x");
    std::string all;
    const std::string text = received(c);
    const std::string before = "$8\r\npmessage\r\n$";
    for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
      const size_t pattern = text.find("\r\n", at + before.size()) + 2;
      all += text.substr(pattern, text.find("\r\n", pattern) - pattern) + " ";
    }
    return all;
  };
  CHECK(matching_patterns("ab") == "* ** ?b [a-c]b \\ab a* ab ");
  CHECK(matching_patterns("b") == "* ** b* ");
  CHECK(matching_patterns("*") == "* ** ");
  CHECK(matching_patterns("") == " * ");
}

TEST_CASE("pub/sub: a client that unsubscribed from all leaves nothing in the index") {
  World w;
  Conn& a = w.open(2);
  Conn& b = w.open(2);
  w.subscribe(a, "news");
  w.subscribe(b, "news");
  w.psubscribe(a, "*");
  unsubscribe_all(w.t, a);
  CHECK(a.subscriptions() == 0);
  CHECK(publish(w.t, "news", "hi") == 1);
  CHECK(received(a).empty());
  unsubscribe_all(w.t, b);
  CHECK(w.s.pubsub.empty());
}

TEST_CASE("tracking: a reader gets one message for a change, and the key is forgotten with it") {
  World w;
  Conn& c = w.open(3);
  start_tracking(w.t, c, {});
  w.get(c, "k");
  w.get(c, "k");
  CHECK(w.s.tracking.remembered == 1);
  invalidate(w.t, "other");
  CHECK(received(c).empty());
  invalidate(w.t, "k");
  CHECK(received(c) == ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n");
  invalidate(w.t, "k");
  CHECK(received(c).empty());
  CHECK(w.s.tracking.remembered == 0);
  stop_tracking(w.t, c);
  CHECK_FALSE(w.s.tracking.active());
}

TEST_CASE(
    "tracking: above the limit of keys one is forgotten and its reader informed; at the limit none is") {
  World w;
  w.s.config.limits.tracking_keys = 2;
  Conn& c = w.open(3);
  start_tracking(w.t, c, {});
  w.get(c, "a");
  w.get(c, "b");
  CHECK(received(c).empty());
  w.get(c, "c");
  CHECK(received(c) == ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n");
  CHECK(w.s.tracking.readers.size() == 2);
}

TEST_CASE("tracking: BCAST sends the changes once a loop iteration, and ends with its last client") {
  World w;
  Conn& c = w.open(3);
  ClientTracking wanted;
  wanted.bcast = true;
  wanted.prefixes = {"user:"};
  start_tracking(w.t, c, wanted);
  invalidate(w.t, "user:1");
  invalidate(w.t, "user:1");
  invalidate(w.t, "item:1");
  CHECK(w.s.tracking.pending == 1);
  CHECK(received(c).empty());
  broadcast_invalidations(w.t);
  CHECK(received(c) == ">2\r\n$10\r\ninvalidate\r\n*1\r\n$6\r\nuser:1\r\n");
  invalidate(w.t, "user:2");
  stop_tracking(w.t, c);
  CHECK(w.s.tracking.pending == 0);
  CHECK(w.s.tracking.prefixes.empty());
}

}  // namespace holdfast
