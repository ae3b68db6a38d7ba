// Lists are text with one line per entry. One write() appends a line, so that a stopped process leaves only
// whole lines.
#include "chaos_record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace holdfast::integration {

namespace {

Fd open_in(const std::filesystem::path& folder, const char* name, int flags) {
  Fd file(open((folder / name).c_str(), flags | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) throw std::runtime_error("cannot open " + (folder / name).string());
  return file;
}

void append(const Fd& file, const std::string& line) {
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error("cannot append to a list");
}

std::string text(uint64_t number) { return std::to_string(number); }

}  // namespace

// While a Guard exists, no other process can lock the counter.
class Storage::Guard {
 public:
  explicit Guard(const Fd& file) : file_(file) {
    if (flock(file_.get(), LOCK_EX) != 0) throw std::runtime_error("cannot lock the counter");
  }
  ~Guard() { flock(file_.get(), LOCK_UN); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  const Fd& file_;
};

Storage::Storage(const std::filesystem::path& folder, uint64_t target)
    : counter_(open_in(folder, "counter", O_RDWR)),
      writes_(open_in(folder, "writes", O_WRONLY | O_APPEND)),
      holds_(open_in(folder, "holds", O_WRONLY | O_APPEND)),
      target_(target) {}

Storage::State Storage::load() const {
  State state;
  const ssize_t n = pread(counter_.get(), &state, sizeof state, 0);
  if (n != 0 && n != sizeof state) throw std::runtime_error("the counter's file is broken");
  return state;
}

void Storage::store(const State& state) const {
  if (pwrite(counter_.get(), &state, sizeof state, 0) != sizeof state)
    throw std::runtime_error("cannot write the counter");
}

uint64_t Storage::value() const { return load().value; }

std::optional<uint64_t> Storage::read(uint64_t token) {
  const Guard guard(counter_);
  State state = load();
  if (token < state.seen) return std::nullopt;
  state.seen = token;
  store(state);
  return state.value;
}

bool Storage::write(uint64_t token, uint64_t based_on) {
  const Guard guard(counter_);
  State state = load();
  if (token < state.seen || state.value >= target_) return false;
  state = {based_on + 1, token};
  store(state);
  append(writes_, text(state.value) + " " + text(based_on) + " " + text(token) + "\n");
  return true;
}

void Storage::note(const Held& held) {
  append(holds_, text(held.token) + " " + std::to_string(held.asked_ns) + " " +
                     std::to_string(held.acquired_ns) + " " + std::to_string(held.valid_ns) + " " +
                     (held.clock_is_right ? "1" : "0") + "\n");
}

std::vector<Write> Storage::writes(const std::filesystem::path& folder) {
  std::vector<Write> all;
  std::ifstream file(folder / "writes");
  for (Write w; file >> w.value >> w.based_on >> w.token;) all.push_back(w);
  return all;
}

std::vector<Held> Storage::holds(const std::filesystem::path& folder) {
  std::vector<Held> all;
  std::ifstream file(folder / "holds");
  for (Held h; file >> h.token >> h.asked_ns >> h.acquired_ns >> h.valid_ns >> h.clock_is_right;)
    all.push_back(h);
  return all;
}

std::vector<std::string> faults_of_writes(const std::vector<Write>& writes, uint64_t final_value) {
  std::vector<std::string> faults;
  Write before;
  for (const Write& w : writes) {
    const std::string what = "the write of " + text(w.value) + " with token " + text(w.token);
    if (w.based_on != before.value) faults.push_back(what + " is not based on " + text(before.value));
    if (w.value != before.value + 1) faults.push_back(what + " comes after " + text(before.value));
    if (w.token <= before.token) faults.push_back(what + " comes after token " + text(before.token));
    before = w;
  }
  if (before.value != final_value)
    faults.push_back("the counter is " + text(final_value) + ", the last write was " + text(before.value));
  if (writes.size() != final_value)
    faults.push_back("the counter is " + text(final_value) + " after " + text(writes.size()) + " writes");
  return faults;
}

namespace {

using Faults = std::vector<std::string>;

void find_repeated_tokens(std::vector<Held> holds, Faults& faults) {
  std::sort(holds.begin(), holds.end(), [](const Held& a, const Held& b) { return a.token < b.token; });
  for (size_t i = 1; i < holds.size(); ++i) {
    if (holds[i].token == holds[i - 1].token)
      faults.push_back("two holds have the token " + text(holds[i].token));
  }
}

// Visits the holds in the order of their requests, and with each the holds that were acquired before.
void find_tokens_out_of_order(std::vector<Held> asked, Faults& faults) {
  std::vector<Held> acquired = asked;
  std::sort(asked.begin(), asked.end(),
            [](const Held& a, const Held& b) { return a.asked_ns < b.asked_ns; });
  std::sort(acquired.begin(), acquired.end(),
            [](const Held& a, const Held& b) { return a.acquired_ns < b.acquired_ns; });
  uint64_t largest = 0;
  auto next = acquired.begin();
  for (const Held& hold : asked) {
    for (; next != acquired.end() && next->acquired_ns < hold.asked_ns; ++next)
      largest = std::max(largest, next->token);
    if (hold.token <= largest)
      faults.push_back("token " + text(hold.token) + " was requested after " + text(largest) +
                       " was acquired");
  }
}

void find_overlaps(std::vector<Held> holds, Faults& faults) {
  std::erase_if(holds, [](const Held& h) { return !h.clock_is_right || h.valid_ns <= h.acquired_ns; });
  std::sort(holds.begin(), holds.end(),
            [](const Held& a, const Held& b) { return a.acquired_ns < b.acquired_ns; });
  Held longest;
  for (const Held& hold : holds) {
    if (hold.acquired_ns < longest.valid_ns)
      faults.push_back("two holds are valid at the same time: tokens " + text(longest.token) + " and " +
                       text(hold.token));
    if (hold.valid_ns > longest.valid_ns) longest = hold;
  }
}

}  // namespace

std::vector<std::string> faults_of_holds(const std::vector<Held>& holds, const std::vector<Span>& outages) {
  Faults faults;
  find_repeated_tokens(holds, faults);
  find_tokens_out_of_order(holds, faults);
  find_overlaps(holds, faults);
  for (const Span& outage : outages) {
    for (const Held& hold : holds) {
      if (hold.asked_ns > outage.from_ns && hold.acquired_ns < outage.to_ns)
        faults.push_back("acquired without a quorum: token " + text(hold.token));
    }
  }
  return faults;
}

}  // namespace holdfast::integration
