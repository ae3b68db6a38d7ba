// The servers of a key: the address text that names the servers, and the ring that picks some of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "client/base/address.h"
#include "client/base/ring.h"

namespace holdfast::client {
namespace {

// Returns the error of parse_address(); empty if it accepts the text.
std::string refusal(const std::string& text) {
  try {
    parse_address(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

std::vector<std::string> names(size_t n) {
  std::vector<std::string> all;
  for (size_t i = 0; i < n; ++i) all.push_back("server-" + std::to_string(i) + ":7379");
  return all;
}

// Returns the names of the servers that have a key.
std::vector<std::string> homes(const Ring& ring, const std::vector<std::string>& all,
                               const std::string& key) {
  std::vector<std::string> found;
  for (const size_t i : ring.servers_of(key)) found.push_back(all[i]);
  return found;
}

}  // namespace

TEST_CASE("address: one server, with and without a port, by name and by IPv6 address") {
  CHECK(parse_address("holdfast://lock.example").servers.at(0).text() == "lock.example:7379");
  CHECK(parse_address("holdfast://10.0.0.1:1").servers.at(0).text() == "10.0.0.1:1");
  CHECK(parse_address("holdfast://[::1]").servers.at(0).text() == "[::1]:7379");
  CHECK(parse_address("holdfast://[::1]:65535").servers.at(0).port == 65535);
  CHECK(parse_address("holdfast://h").write_quorum == 1);
}

TEST_CASE("address: several servers decide by majority, unless the address says otherwise") {
  const ClientConfig five = parse_address("quorum://a,b,c,d,e");
  CHECK(five.servers.size() == 5);
  CHECK(five.replicas == 5);
  CHECK(five.write_quorum == 3);
  CHECK(five.read_quorum == 3);
  const ClientConfig set =
      parse_address("quorum://a,b,c,d,e?rfactor=3&wquorum=3&rquorum=1&timeout=50&min-wait=1&max-wait=2");
  CHECK(set.replicas == 3);
  CHECK(set.write_quorum == 3);
  CHECK(set.read_quorum == 1);
  CHECK(set.server_timeout.count == 50);
  CHECK(set.min_wait.count == 1);
  CHECK(set.max_wait.count == 2);
  CHECK(parse_address("quorum://a,b,c?rquorum=1").write_quorum == 3);  // so that quorums overlap
}

TEST_CASE("address: exclusive locks need wquorum servers, shared ones rquorum, semaphores all") {
  const ClientConfig place = parse_address("quorum://a,b,c,d,e?wquorum=4&rquorum=2");
  CHECK(quorum_of(place, Mode::kExclusiveLock) == 4);
  CHECK(quorum_of(place, Mode::kSharedLock) == 2);
  CHECK(quorum_of(place, Mode::kCountedLock) == 5);
}

TEST_CASE("address: an embedded engine, with and without a name") {
  const ClientConfig place = parse_address("embedded:");
  CHECK(place.servers.size() == 1);
  CHECK(place.servers.at(0).embedded);
  CHECK(place.servers.at(0).text() == "embedded");
  CHECK(place.write_quorum == 1);
  CHECK(parse_address("embedded:jobs").servers.at(0).text() == "embedded:jobs");
  CHECK_FALSE(parse_address("holdfast://embedded").servers.at(0).embedded);
}

TEST_CASE("address: a Redis, with a login and acknowledgements") {
  const ClientConfig place = parse_address("redis://me:a%40%3ab@h?acks=2&ack-timeout=30&timeout=50");
  const Address& address = place.servers.at(0);
  CHECK(address.redis);
  CHECK(address.text() == "h:6379");
  CHECK(address.user == "me");
  CHECK(address.password == "a@:b");
  CHECK(address.acks == 2);
  CHECK(address.ack_timeout.count == 30);
  CHECK(parse_address("redis://:p@[::1]:1").servers.at(0).text() == "[::1]:1");
  CHECK(parse_address("redis://:p@h").servers.at(0).user.empty());
  CHECK(parse_address("redis://h?acks=1").servers.at(0).ack_timeout.count == 500);
  CHECK(parse_address("redis://h").servers.at(0).acks == 0);
}

TEST_CASE("address: a Redis Cluster is one server, by any of its nodes") {
  const ClientConfig place = parse_address("redis-cluster://u:p@h1,h2:7000");
  REQUIRE(place.servers.size() == 1);
  const Address& cluster = place.servers[0];
  CHECK(cluster.cluster);
  CHECK(cluster.text() == "h1:6379,h2:7000");
  REQUIRE(cluster.others.size() == 1);
  CHECK(cluster.others[0].password == "p");
  CHECK(place.write_quorum == 1);
}

TEST_CASE("address: a Redis server may be part of a quorum") {
  const ClientConfig place = parse_address("quorum://a,redis://:p@b,c:1?acks=1");
  REQUIRE(place.servers.size() == 3);
  CHECK(place.names() == std::vector<std::string>{"a:7379", "b:6379", "c:1"});
  CHECK(place.servers[1].redis);
  CHECK(place.servers[1].acks == 1);
  CHECK_FALSE(place.servers[2].redis);
  CHECK(place.servers[2].acks == 0);
  CHECK(place.write_quorum == 2);
}

TEST_CASE("address: a Redis address may name database 0") {
  CHECK(parse_address("redis://h:7000/0").servers[0].text() == "h:7000");
  CHECK(parse_address("redis://h/0?acks=1").servers[0].port == 6379);
  CHECK(parse_address("redis://u:p@[::1]:7000/0").servers[0].port == 7000);
  CHECK(refusal("redis://h/00").find("database 0") != std::string::npos);
}

TEST_CASE("address: an error in a Redis address is reported without its password") {
  const auto says = [](const std::string& text, const std::string& part) {
    const std::string why = refusal(text);
    return why.find(part) != std::string::npos && why.find("secret") == std::string::npos;
  };
  CHECK(says("redis://h/2", "database 0"));
  CHECK(says("redis://h1,h2", "redis-cluster://"));
  CHECK(says("redis://secret@h", "user:password@"));
  CHECK(says("redis://:secret%4@h", "two hexadecimal digits"));
  CHECK(says("redis://:secret@h?acks=x", "acks"));
  CHECK(says("redis-cluster://h1,:secret@h2", "before its first node"));
  CHECK(says("quorum://a,redis-cluster://:secret@b", "redis://host:port"));
  CHECK(says("quorum://a,redis://:secret@b,redis://:other@b", "twice"));
  CHECK(says("redis://h?ack-timeout=5", "give acks"));
  CHECK(says("redis://h?acks=1&timeout=50&ack-timeout=50", "less than timeout"));
  CHECK(says("redis://h?acks=1001", "at most 1000"));
  CHECK(says("holdfast://h?acks=1", "no redis://"));
}

TEST_CASE("address: TLS is selected by the scheme, or for all servers") {
  CHECK_FALSE(parse_address("holdfast://h?timeout=5").servers.at(0).tls);
  CHECK(parse_address("holdfasts://h").servers.at(0).text() == "h:7379");  // the place on the ring stays
  CHECK(parse_address("holdfasts://h").servers.at(0).tls);
  const ClientConfig redis = parse_address("rediss://:p@h?insecure=yes&cert=c.pem&key=k");
  CHECK(redis.servers.at(0).text() == "h:6379");
  CHECK((redis.servers.at(0).tls && redis.servers.at(0).redis));
}

TEST_CASE("address: the TLS settings") {
  const ClientConfig place =
      parse_address("holdfasts://h?cacert=/a%26b%3f/ca.pem&cert=c.pem&key=k.pem&sni=name");
  CHECK(place.tls.role == TlsRole::kClient);
  CHECK(place.tls.verify == TlsVerify::kRequired);
  CHECK(place.tls.ca_file == "/a&b?/ca.pem");
  CHECK(place.tls.cert_file == "c.pem");
  CHECK(place.tls.key_file == "k.pem");
  CHECK(place.servers.at(0).tls_name == "name");
  CHECK(parse_address("holdfasts://h?cacertdir=/ca").tls.ca_dir == "/ca");
  CHECK(parse_address("holdfasts://h").servers.at(0).tls_name.empty());
  for (const char* insecure : {"holdfasts://h?insecure", "holdfasts://h?timeout=5&insecure=yes"})
    CHECK(parse_address(insecure).tls.verify == TlsVerify::kNone);
}

TEST_CASE("address: some or all servers of a quorum or cluster use TLS") {
  const ClientConfig some = parse_address("quorum://a,holdfasts://b,rediss://c,holdfast://d?sni=name");
  CHECK_FALSE(some.servers.at(0).tls);
  CHECK(some.servers.at(0).tls_name.empty());
  CHECK((some.servers.at(1).tls && !some.servers.at(1).redis));
  CHECK((some.servers.at(2).tls && some.servers.at(2).redis));
  CHECK_FALSE(some.servers.at(3).tls);
  for (const Address& server : parse_address("quorum://a,redis://b,holdfasts://c?tls=yes").servers)
    CHECK(server.tls);
  for (const char* text :
       {"rediss-cluster://u:p@h1,h2?sni=name", "redis-cluster://h1,h2?tls=yes&sni=name"}) {
    const Address cluster = parse_address(text).servers.at(0);
    CHECK((cluster.tls && cluster.cluster && cluster.others.at(0).tls));
    CHECK(cluster.others.at(0).tls_name == "name");
  }
}

TEST_CASE("address: errors in TLS settings are reported") {
  const auto says = [](const std::string& text, const std::string& part) {
    return refusal(text).find(part) != std::string::npos;
  };
  CHECK(says("holdfast://h?cacert=ca.pem", "cacert needs TLS, which no server here uses"));
  CHECK(says("redis://h?insecure", "insecure needs TLS"));
  CHECK(says("holdfasts://h?tls=no", "tls=yes"));
  CHECK(says("holdfasts://h?insecure=no", "leave it out"));
  CHECK(says("holdfasts://h?insecure&cacert=ca.pem", "insecure turns verification off"));
  CHECK(says("holdfasts://h?cacert", "needs a file"));
  CHECK(says("holdfasts://h?sni=", "needs a name"));
  CHECK(says("holdfasts://h?cacert=%4", "two hexadecimal digits"));
  CHECK(says("holdfasts://a,b", "write quorum://"));
  CHECK(says("quorum://a,rediss-cluster://b", "rediss://host:port"));
}

TEST_CASE("address: TLS files are read when the address is opened, and their errors are reported") {
  const auto why = [](const std::string& text) -> std::string {
    try {
      client_config_of(text);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  CHECK(why("holdfast://h").empty());
  const std::string missing = why("holdfasts://h?cacert=/none/ca.pem");
  CHECK(missing.find("cannot read the CA file /none/ca.pem: No such file") != std::string::npos);
  CHECK(missing.starts_with("\"holdfasts://h?cacert"));
  CHECK(why("rediss://h?key=/none/k.pem").find("without a certificate file; set both") !=
        std::string::npos);
  CHECK_THROWS_AS(holdfast::Client("quorum://a,rediss://b?cacert=/none/ca.pem"), std::invalid_argument);
  const ClientConfig place = client_config_of("quorum://a,holdfasts://b,rediss://c?insecure");
  CHECK(place.servers.at(0).tls_context == nullptr);
  CHECK(place.servers.at(1).tls_context != nullptr);
  CHECK(place.servers.at(1).tls_context == place.servers.at(2).tls_context);
}

TEST_CASE("address: without a scheme one server means holdfast://, and several mean quorum://") {
  CHECK(parse_address("lock.example").names() == std::vector<std::string>{"lock.example:7379"});
  CHECK(parse_address("10.0.0.1:1").names() == std::vector<std::string>{"10.0.0.1:1"});
  CHECK(parse_address("[::1]").names() == std::vector<std::string>{"[::1]:7379"});
  CHECK(parse_address("redis:6379").names() == std::vector<std::string>{"redis:6379"});  // a host
  CHECK_FALSE(parse_address("redis:6379").servers.at(0).redis);
  CHECK(parse_address("h?timeout=50&tls=yes").server_timeout.count == 50);
  CHECK(parse_address("h?timeout=50&tls=yes").servers.at(0).tls);
  const ClientConfig some = parse_address("a,b:1,redis://c,holdfasts://d?rfactor=3&wquorum=3");
  CHECK(some.names() == std::vector<std::string>{"a:7379", "b:1", "c:6379", "d:7379"});
  CHECK(some.replicas == 3);
  CHECK(some.write_quorum == 3);
  CHECK(some.servers.at(2).redis);
  CHECK(some.servers.at(3).tls);
  CHECK(parse_address("a,b,c").write_quorum == 2);
}

TEST_CASE("address: an error in an address without a scheme is named, with an example") {
  const auto says = [](const char* text, const char* part, const char* example) {
    CAPTURE(text);
    const std::string why = refusal(text);
    CHECK_MESSAGE(why.find(part) != std::string::npos, why);
    CHECK_MESSAGE(why.find(example) != std::string::npos, why);
  };
  says("", "no host", "10.0.0.5:7379");
  says(":7379", "no host", "10.0.0.5:7379");
  says("7379", "\"7379\" is a port without a host", "127.0.0.1:7379");
  says("a:7379, b:7379", "\" b\" has a blank", "10.0.0.5:7379");
  says("a/7379", "\"a/7379\" has a \"/\"", "10.0.0.5:7379");
  says("a:0", "\"0\" is not a port", "10.0.0.5:7379");
  says("a,b:70000", "\"70000\" is not a port", "10.0.0.5:7379");
  says("::1:7379", "no host", "[::1]:7379");
  says("a,,b", "no host", "10.0.0.5:7379");
  says("a,b,", "behind the last comma", "");
  says("a,b,a", "\"a:7379\" is listed twice", "");
  says("me@h", "user:password@", "app:password@10.0.0.5:7379");
  says("ftp://h", "\"ftp://\" is not a scheme", "holdfast://");
  says("Holdfast://h", "\"Holdfast://\" is not a scheme", "holdfast://");
  says("a?ttl=3", "no setting \"ttl\"", "rfactor");
}

TEST_CASE("address: what is wrong is said") {
  CHECK(refusal("embedded").find("with a colon") != std::string::npos);
  CHECK(refusal("embedded:?timeout=50").find("no settings") != std::string::npos);
  CHECK(refusal("embedded://jobs").find("without slash") != std::string::npos);
  CHECK(refusal("embedded:a,b").find("without slash") != std::string::npos);
  CHECK(refusal("holdfast://").find("no host") != std::string::npos);
  CHECK(refusal("holdfast://:7379").find("no host") != std::string::npos);
  CHECK(refusal("holdfast://h:0").find("not a port") != std::string::npos);
  CHECK(refusal("holdfast://h:65536").find("not a port") != std::string::npos);
  CHECK(refusal("holdfast://::1:7379").find("no host") != std::string::npos);
  CHECK(refusal("holdfast://[::1").find("bracket") != std::string::npos);
  CHECK(refusal("holdfast://a,b").find("write quorum://") != std::string::npos);
  CHECK(refusal("quorum://a,b,").find("last comma") != std::string::npos);
  CHECK(refusal("quorum://a,b,a").find("twice") != std::string::npos);
  CHECK(refusal("quorum://a,b,c?rfactor=4").find("more than the number") != std::string::npos);
  CHECK(refusal("quorum://a,b,c?wquorum=1").find("more than half") != std::string::npos);
  CHECK(refusal("quorum://a,b,c,d?wquorum=2").find("more than half") != std::string::npos);
  CHECK(refusal("quorum://a,b,c?wquorum=2&rquorum=1").find("rquorum + wquorum") != std::string::npos);
  CHECK(refusal("quorum://a,b,c?wquorum=4").find("more than rfactor") != std::string::npos);
  CHECK(refusal("quorum://a,b,c?timeout=0").find("at least 1") != std::string::npos);
  CHECK(refusal("quorum://a,b,c?min-wait=3&max-wait=2").find("min-wait") != std::string::npos);
  CHECK(refusal("quorum://a,b,c?ttl=3").find("no setting \"ttl\"") != std::string::npos);
}

TEST_CASE("ring: a list in another order gives each key the same servers") {
  const std::vector<std::string> all = names(7);
  std::vector<std::string> turned = all;
  std::ranges::reverse(turned);
  const Ring ring(all, 3);
  const Ring other(turned, 3);
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "key-" + std::to_string(i);
    CHECK(homes(ring, all, key) == homes(other, turned, key));
  }
}

TEST_CASE("ring: a key has as many different servers as asked for, and each server has its share") {
  const Ring ring(names(5), 3);
  std::map<size_t, int> keys;
  for (int i = 0; i < 10000; ++i) {
    std::vector<size_t> servers = ring.servers_of("key-" + std::to_string(i));
    REQUIRE(servers.size() == 3);
    for (const size_t s : servers) ++keys[s];
    std::ranges::sort(servers);
    CHECK(std::ranges::adjacent_find(servers) == servers.end());
  }
  for (const auto& [server, count] : keys) CHECK(std::abs(count - 6000) < 1200);
}

TEST_CASE("ring: an added server takes keys from the present ones and moves none between them") {
  const std::vector<std::string> all = names(6);
  const Ring five(names(5), 1);
  const Ring six(all, 1);
  int moved = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string key = "key-" + std::to_string(i);
    const size_t before = five.servers_of(key).at(0);
    const size_t after = six.servers_of(key).at(0);
    if (before == after) continue;
    CHECK(after == 5);
    ++moved;
  }
  CHECK(moved > 1000);
  CHECK(moved < 2400);
}

TEST_CASE("ring: the servers of a key are the same in every version") {
  const Ring ring(names(5), 3);
  std::string all;
  for (const std::string& name : homes(ring, names(5), "printer")) all += name + " ";
  CHECK(all == "server-4:7379 server-1:7379 server-2:7379 ");
}

}  // namespace holdfast::client
