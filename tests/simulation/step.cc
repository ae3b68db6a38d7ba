// Writes and reads steps.
#include "step.h"

#include "../transcripts/reply_text.h"
#include "dice.h"

namespace holdfast::simulation {
namespace {

void put_number(std::string& out, int64_t number) { out += std::to_string(number) + " "; }

class StepReader {
 public:
  explicit StepReader(std::string_view bytes) : bytes_(bytes) {}

  bool read(Step& step) {
    int64_t kind = 0;
    int64_t conn = 0;
    int64_t n = 0;
    if (!number(kind) || !number(conn) || !number(step.pass_ms) || !number(n)) return false;
    step.kind = static_cast<Step::Kind>(kind);
    step.conn = static_cast<int>(conn);
    for (; n > 0; --n) {
      int64_t size = 0;
      if (!number(size) || bytes_.size() < static_cast<size_t>(size)) return false;
      step.args.emplace_back(bytes_.substr(0, static_cast<size_t>(size)));
      bytes_.remove_prefix(static_cast<size_t>(size));
    }
    if (!bytes_.starts_with('\n')) return false;
    bytes_.remove_prefix(1);
    return true;
  }

 private:
  bool number(int64_t& out) {
    const size_t end = bytes_.find(' ');
    if (end == std::string_view::npos) return false;
    out = std::stoll(std::string(bytes_.substr(0, end)));
    bytes_.remove_prefix(end + 1);
    return true;
  }

  std::string_view bytes_;
};

}  // namespace

Profile::Profile(uint64_t a_seed) : seed(a_seed) {
  Dice dice(a_seed * 2 + 1);
  conns = static_cast<int>(dice.between(4, 8));
  keys = static_cast<int>(dice.between(2, 6));
  owners = static_cast<int>(dice.between(3, 6));
  databases = dice.one_in(4) ? 2 : 1;
  look_always = dice.one_in(2);
  transactions = dice.one_in(3);
  ticks_first = !dice.one_in(3);
  session_grace_ms = dice.pick<int64_t>({0, 0, 1, 10, 50});
  waiters = dice.pick<uint32_t>({1000000, 1000000, 1000000, 3});
  waiters_per_key = dice.pick<uint32_t>({100000, 100000, 100000, 2});
  max_ended_leases = dice.pick<uint32_t>({100000, 2});
  token_floor = dice.pick<uint64_t>({0, static_cast<uint64_t>(kStartWallUs)});
}

Config Profile::config() const {
  Config out;
  out.hash_seed = seed;
  out.session_grace = DurationMs{session_grace_ms};
  out.limits.waiters = waiters;
  out.limits.waiters_per_key = waiters_per_key;
  out.limits.max_ended_leases = max_ended_leases;
  out.token_floor = token_floor;
  out.host_facts = [] { return HostFacts{}; };
  return out;
}

std::string written(const Step& step) {
  std::string out;
  put_number(out, static_cast<int64_t>(step.kind));
  put_number(out, step.conn);
  put_number(out, step.pass_ms);
  put_number(out, static_cast<int64_t>(step.args.size()));
  for (const std::string& arg : step.args) {
    put_number(out, static_cast<int64_t>(arg.size()));
    out += arg;
  }
  return out + "\n";
}

std::vector<Step> read_steps(std::string_view bytes) {
  std::vector<Step> steps;
  StepReader reader(bytes);
  for (Step step; reader.read(step); step = {}) steps.push_back(step);
  return steps;
}

std::string conn_name(int conn) {
  return conn < 0 ? "Probe" : std::string(1, static_cast<char>('A' + conn));
}

std::string command_line(const std::vector<std::string>& args) {
  std::string out;
  for (const std::string& arg : args) {
    const bool plain = !arg.empty() && arg.find_first_not_of(
                                           "abcdefghijklmnopqrstuvwxyz0123456789:-"
                                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ*@") == std::string::npos;
    out += (out.empty() ? "" : " ") + (plain ? arg : transcript::in_quotes(arg));
  }
  return out;
}

std::string transcript_head(const Profile& profile) {
  const Config config = profile.config();
  std::string out = "== found by the simulation with seed " + std::to_string(profile.seed) + "\n";
  out += "config session-grace " + std::to_string(config.session_grace.count) + "\n";
  out += "config waiters " + std::to_string(config.limits.waiters) + "\n";
  out += "config waiters-per-key " + std::to_string(config.limits.waiters_per_key) + "\n";
  out += "config max-ended-leases " + std::to_string(config.limits.max_ended_leases) + "\n";
  return out + "config token-floor " + std::to_string(config.token_floor) + "\n";
}

}  // namespace holdfast::simulation
