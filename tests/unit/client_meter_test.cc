// The counters of a client: sums, the rules for reconnections, and the hook.
#include "client/api/client_meter.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "client/transport/auth.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Kind = ClientEvent::Kind;

}  // namespace

TEST_CASE("client meter: waits have their number, sum and longest, also without a grant") {
  ClientMeter meter({"a:1"}, {});
  meter.record_attempts(3);
  meter.record_grant("k", 7, 5us, false);
  meter.record_grant("k", 8, 40us, true);
  meter.record_no_grant("k", Outcome::kTimeout, 100us, true);
  const ClientStats stats = meter.stats();
  CHECK(stats.acquisitions == 3);
  CHECK(stats.attempts == 3);
  CHECK(stats.grants == 2);
  CHECK(stats.waits.count == 2);
  CHECK(stats.waits.total == 140us);
  CHECK(stats.waits.longest == 100us);
  CHECK(stats.waits.mean() == 70us);
  CHECK(stats.holds.mean() == 0us);
}

TEST_CASE("client meter: losses count by their reason, and their holds count, too") {
  ClientMeter meter({"a:1"}, {});
  meter.record_loss("k", 1, LossReason::kGone, 1us);
  for (int i = 0; i < 2; ++i) meter.record_loss("k", 1, LossReason::kUnreachable, 1us);
  for (int i = 0; i < 3; ++i) meter.record_loss("k", 1, LossReason::kRefused, 1us);
  for (int i = 0; i < 4; ++i) meter.record_loss("k", 1, LossReason::kExpired, 1us);
  meter.record_release("k", 1, Outcome::kOk, 10us);
  const ClientStats stats = meter.stats();
  CHECK(stats.losses.gone == 1);
  CHECK(stats.losses.unreachable == 2);
  CHECK(stats.losses.refused == 3);
  CHECK(stats.losses.expired == 4);
  CHECK(stats.losses.total() == 10);
  CHECK(stats.holds.count == 11);
  CHECK(stats.holds.total == 20us);
}

TEST_CASE("client meter: a round trip counts only with an answer, and not for a wait in a queue") {
  ClientMeter meter({"a:1", "b:2"}, {});
  meter.record_request(1, true, false, 30us);
  meter.record_request(1, true, true, 1s);
  meter.record_request(1, false, false, 2s);
  const std::vector<ServerStats> servers = meter.stats().servers;
  CHECK(servers.at(0).requests == 0);
  CHECK(servers.at(1).server == "b:2");
  CHECK(servers.at(1).requests == 3);
  CHECK(servers.at(1).failures == 1);
  CHECK(servers.at(1).round_trips.count == 1);
  CHECK(servers.at(1).round_trips.longest == 30us);
}

TEST_CASE("client meter: a reconnection follows a connection that broke, not the first connection") {
  ClientMeter meter({"a:1"}, {});
  const auto reconnections = [&] { return meter.stats().servers[0].reconnections; };
  meter.record_connection(0, false);  // the server does not run yet
  meter.record_connection(0, true);
  meter.record_connection(0, true);  // a wait has its own connection
  CHECK(reconnections() == 0);
  meter.record_connection(0, false);
  meter.record_connection(0, false);
  CHECK(reconnections() == 0);
  meter.record_connection(0, true);
  meter.record_connection(0, true);
  CHECK(reconnections() == 1);
  CHECK(meter.stats().servers[0].connections == 4);
}

TEST_CASE("client meter: the hook gets each event, and its exceptions have no effect") {
  std::vector<std::string> events;
  ClientMeter meter({"a:1"}, [&](const ClientEvent& event) {
    events.push_back(std::string(name_of(event.kind)) + " " + std::string(event.key) +
                     std::string(event.server) + " " + std::to_string(event.token) + " " +
                     std::to_string(event.duration.count()));
    throw std::runtime_error("the user's mistake");
  });
  meter.record_connection(0, true);
  meter.record_request(0, true, false, 3us);
  meter.record_grant("k", 7, 5us, false);
  meter.record_renewal("k", 7, Outcome::kOk, 2us);
  meter.record_renewal("k", 7, Outcome::kBusy, 2us);
  meter.record_release("k", 7, Outcome::kOk, 9us);
  meter.record_loss("k", 7, LossReason::kGone, 9us);
  meter.record_no_grant("k", Outcome::kBusy, 4us, false);
  meter.record_request(0, false, false, 6us);
  meter.record_connection(0, false);
  CHECK(events == std::vector<std::string>{"connected a:1 0 0", "answer a:1 0 3", "granted k 7 5",
                                           "renewed k 7 2", "renewal failed k 7 2", "released k 7 9",
                                           "lost k 7 9", "not granted k 0 4", "no answer a:1 0 6",
                                           "connection lost a:1 0 0"});
  CHECK(meter.stats().grants == 1);
}

TEST_CASE("connection name: blanks and other characters that CLIENT SETNAME rejects become '-'") {
  CHECK(client::connection_name("holdfast-lib") == "holdfast-lib");
  CHECK(client::connection_name("my app\n\x7f\xc3\xbc!~") == "my-app----!~");
  CHECK(client::connection_name("") == "");
  CHECK(client::connection_name(std::string(127, 'x')).size() == 127);
  CHECK(client::connection_name(std::string(128, 'x')).size() == 128);
  CHECK(client::connection_name(std::string(129, 'x')).size() == 128);
}

}  // namespace holdfast
