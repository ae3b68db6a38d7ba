// What a request writes to the journal follows the request and its reply, not the size of the values that
// it changes: every command of the table, with small arguments, on large values of every type.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "replay_requests.h"
#include "seeds.h"
#include "unit/session.h"

namespace holdfast::simulation {
namespace {

using Words = std::vector<std::string>;

constexpr int kElements = 3000;
constexpr size_t kStringBytes = 200000;
constexpr int kPacked = 500;  // fields of a packed hash
// Of all records of a request, beside its words and its reply. A small value is recorded as a whole.
constexpr size_t kConstantBytes = 5500;

// Their result is a value, or they change all keys.
bool is_left_out(const Command& command) {
  constexpr std::array<std::string_view, 13> kNames = {
      "flushall",    "flushdb",     "swapdb",      "restore",    "function|restore",
      "sdiffstore",  "sinterstore", "sunionstore", "zdiffstore", "zinterstore",
      "zunionstore", "zrangestore", "eval"};
  return std::ranges::find(kNames, command.name) != kNames.end();
}

Words many(std::string command, std::string key, int n) {
  Words words = {std::move(command), std::move(key)};
  const bool scored = words[0] == "ZADD";
  for (int i = 0; i < n; ++i) {
    if (scored) words.push_back(std::to_string(i));
    words.push_back((words[0] == "HSET" ? "f" : "m") + std::to_string(i));
    if (words[0] == "HSET") words.emplace_back("value");
  }
  return words;
}

class LargeValues {
 public:
  LargeValues() {
    for (const char letter : {'t', 'h', 'l', 's', 'z'}) {
      for (const char digit : {'0', '1', '2'}) keys_.push_back({letter, digit});
    }
    must({"SET", "pristine-t", std::string(kStringBytes, 's')});
    must(many("HSET", "pristine-h", kElements));
    must(many("RPUSH", "pristine-l", kElements));
    must(many("SADD", "pristine-s", kElements));
    must(many("ZADD", "pristine-z", kElements));
    must(many("HSET", "pristine-packed", kPacked));
    for (const std::string& key : keys_) renew(key);
    engine_.keep_journal();
  }

  // Returns the bytes that the request wrote, and its reply.
  std::pair<size_t, std::string> run(const Words& words) {
    engine_.clear_journal_records();
    std::string reply = client_->ask(words);
    const size_t bytes = engine_.journal_records().size();
    if (client_->blocked()) {
      client_->disconnect();
      client_ = std::make_unique<TestClient>(engine_);
    }
    for (const std::string& key : keys_) {
      if (std::ranges::find(words, key) != words.end()) renew(key);
    }
    return {bytes, std::move(reply)};
  }

 private:
  // The second hash is packed.
  void renew(const std::string& key) {
    const std::string from = key == "h1" ? "pristine-packed" : "pristine-" + key.substr(0, 1);
    REQUIRE(maker_.ask({"COPY", from, key, "REPLACE"}) == ":1\r\n");
  }
  void must(const Words& words) { maker_.must(words); }

  Engine engine_{session_config()};
  TestClient maker_{engine_};
  std::unique_ptr<TestClient> client_ = std::make_unique<TestClient>(engine_);
  std::vector<std::string> keys_;
};

}  // namespace

TEST_CASE("journal: what a request writes follows the request and its reply, not the size of a value") {
  LargeValues values;
  ReplayRequests requests(from_environment("HOLDFAST_SEED", 1));
  const uint64_t draws = from_environment("HOLDFAST_SIM_RUNS", 40);
  for (const Command* command : requests.writes()) {
    if (is_left_out(*command)) continue;
    for (uint64_t n = 0; n < draws; ++n) {
      const Words words = requests.of_table(*command);
      size_t bytes = kConstantBytes;
      std::string text;
      for (const std::string& word : words) {
        bytes += 2 * word.size();
        if (text.size() < 200) text += word + " ";
      }
      const auto [written, reply] = values.run(words);
      CAPTURE(text);
      CHECK(written <= bytes + 2 * reply.size());
    }
  }
}

TEST_CASE("journal: a new deadline of a value of 129 bytes or more does not write the value") {
  Engine engine{session_config()};
  TestClient client{engine};
  const auto written_by = [&](const Words& words) {
    CHECK_FALSE(engine.journal_records().empty());  // also writes the large values
    engine.clear_journal_records();
    CHECK(client.ask(words).starts_with(':'));
    return engine.journal_records().size();
  };
  engine.keep_journal();
  for (const size_t size : {129, 512, 4096, 4097, 100000}) {
    CAPTURE(size);
    const std::string value(size, 'v');
    client.must({"SET", "k", value, "PX", "1000"});
    CHECK(written_by({"PEXPIRE", "k", "2000"}) <= 100);
    if (size <= 512) CHECK(written_by({"RENEW", "k", value, "3000"}) <= 100);
    CHECK(written_by({"PERSIST", "k"}) <= 100);
  }
  Words grant = {"LEASE", "GRANT", "l", "1000"};
  for (int i = 0; i < 100; ++i) {
    grant.insert(grant.end(), {"k" + std::to_string(i), std::string(4096, 'v')});
  }
  client.ask(grant);
  CHECK(written_by({"LEASE", "RENEW", "l", "2000"}) <= 100 * 100);
}

}  // namespace holdfast::simulation
