// The command table, and the look-up of its rows.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "core/command/command.h"

namespace holdfast {

namespace {

constexpr size_t kMaxNameBytes = 32;

std::vector<Command> sorted_rows() {
  std::vector<Command> rows;
  for (const auto& group : {acl_commands(), connection_commands(), generic_commands(), hash_commands(),
                            list_commands(), lock_commands(), pubsub_commands(), scripting_commands(),
                            server_commands(), set_commands(), string_commands(), zset_commands()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  std::ranges::sort(rows, {}, &Command::name);
  return rows;
}

// Maps names to rows, ignoring case: a hash table with open addressing, hashed by the name's bytes. Every
// request uses it. A name of four to eight letters is identified by its number alone: only a letter becomes
// a lower-case letter by kLower.
class NameIndex {
 public:
  NameIndex() {
    for (const Command& c : all_commands()) {
      size_t i = place_of(c.name);
      while (places_[i].row != nullptr) i = (i + 1) % kPlaces;
      const bool letters = std::ranges::all_of(c.name, [](char l) { return l >= 'a' && l <= 'z'; });
      places_[i] = {letters ? number_of(c.name) : 0, &c};
    }
  }

  const Command* find(std::string_view name) const {
    if (name.size() > kMaxBytes) return nullptr;
    const uint64_t number = number_of(name);
    for (size_t i = place_of(name); places_[i].row != nullptr; i = (i + 1) % kPlaces) {
      const Place& place = places_[i];
      if (number != 0 && place.number == number && place.row->name.size() == name.size()) return place.row;
      if (equals_ignore_case(place.row->name, name)) return place.row;
    }
    return nullptr;
  }

 private:
  struct Place {
    uint64_t number = 0;  // 0 if the name has none
    const Command* row = nullptr;
  };
  static constexpr size_t kMaxBytes = 2 * kMaxNameBytes;
  static constexpr size_t kPlaces = 1024;  // several times the rows, so that most look-ups need one probe
  static constexpr uint64_t kLower = 0x2020202020202020;  // the bits that lower-case letters have

  // The number of a name of four to eight bytes; together with the size it is unique. Returns 0 for other
  // sizes.
  static uint64_t number_of(std::string_view name) {
    if (name.size() < 4 || name.size() > 8) return 0;
    uint32_t head = 0;
    uint32_t tail = 0;  // overlaps `head` if the name has less than eight bytes
    std::memcpy(&head, name.data(), sizeof head);
    std::memcpy(&tail, name.data() + name.size() - sizeof tail, sizeof tail);
    return ((uint64_t{tail} << 32U) | head) | kLower;
  }

  static size_t place_of(std::string_view name) {
    uint64_t number = number_of(name);
    if (number == 0) {
      for (const char c : name) number = number * 31 + static_cast<unsigned char>(ascii_lower(c));
    }
    return (number + name.size()) * 0x9E3779B97F4A7C15ULL >> 54U;
  }

  std::array<Place, kPlaces> places_{};
};

const Command* find_name(std::string_view name) {
  static const NameIndex kIndex;
  return kIndex.find(name);
}

const Command* find_subcommand(const Command& container, std::string_view sub) {
  std::array<char, 2 * kMaxNameBytes> name;
  if (sub.size() > kMaxNameBytes) return nullptr;
  char* end = std::ranges::copy(container.name, name.begin()).out;
  *end++ = '|';
  end = std::ranges::copy(sub, end).out;
  return find_name({name.data(), static_cast<size_t>(end - name.data())});
}

}  // namespace

std::string wrong_arity_text(const Command& c) {
  return std::string("ERR wrong number of arguments for '").append(c.name).append("' command");
}

std::string upper_case(std::string_view name) {
  std::string s(name);
  for (char& c : s) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return s;
}

std::span<const Command> all_commands() {
  static const std::vector<Command> kRows = sorted_rows();
  return kRows;
}

const Command* find_command(std::string_view name) { return find_name(name); }

bool arity_fits(const Command& c, size_t argc) {
  const auto n = static_cast<int>(argc);
  return c.arity < 0 ? n >= -c.arity : n == c.arity;
}

const Command* find_row(std::span<const std::string_view> argv) {
  const Command* c = find_command(argv[0]);
  if (c == nullptr || c->is_subcommand()) return nullptr;
  return c->has(kSubcommands) && argv.size() > 1 ? find_subcommand(*c, argv[1]) : c;
}

const Command* resolve_command(std::span<const std::string_view> argv, Reply& reply) {
  const Command* c = find_command(argv[0]);
  if (c == nullptr || c->is_subcommand()) {
    reply.error(unknown_command_text(argv));
    return nullptr;
  }
  if (c->has(kSubcommands) && argv.size() > 1) {
    const Command* sub = find_subcommand(*c, argv[1]);
    if (sub == nullptr) {
      const std::string shown(argv[1].substr(0, 128));
      reply.error("ERR unknown subcommand '" + shown + "'. Try " + upper_case(c->name) + " HELP.");
      return nullptr;
    }
    c = sub;
  }
  if (c->handler == nullptr || !arity_fits(*c, argv.size())) {
    // As in Redis, this error ends the transaction if EXEC itself is malformed.
    const std::string text = wrong_arity_text(*c);
    reply.error(c->has(kExec) ? "EXECABORT Transaction discarded because of: " + text.substr(4) : text);
    return nullptr;
  }
  return c;
}

// Another argument is in front of the count in EVAL (the script), ZUNIONSTORE (the destination, a key
// itself) and BLMPOP (the timeout).
KeyCount key_count_of(const Command& command) {
  const bool second = command.first_key == 1 || command.has(kScript | kBlocking);
  return {second ? size_t{2} : size_t{1}, command.has(kCountsPairs) ? size_t{2} : size_t{1}};
}

std::optional<std::vector<size_t>> key_positions(const Command& command,
                                                 std::span<const std::string_view> argv) {
  std::vector<size_t> keys;
  if (command.has(kMovableKeys)) {
    const auto [at, step] = key_count_of(command);
    const bool needs_one = !command.has(kNoMandatoryKeys);
    const auto most = static_cast<int64_t>((argv.size() - at - 1) / step);
    const auto count = parse_int_in(argv[at], needs_one ? 1 : 0, most);
    if (!count) return std::nullopt;
    if (command.first_key == 1) keys.push_back(1);
    for (size_t i = 0; i < static_cast<size_t>(*count); ++i) keys.push_back(at + 1 + i * step);
    return keys;
  }
  if (command.first_key == 0) return keys;
  // Counted from the end if it is negative: -1 is the last argument, -2 (BLPOP) the one before it.
  const size_t end = command.last_key < 0 ? argv.size() : 0;
  const size_t last = end + static_cast<size_t>(command.last_key);
  const auto step = static_cast<size_t>(command.key_step);
  for (auto i = static_cast<size_t>(command.first_key); i <= last; i += step) keys.push_back(i);
  return keys;
}

}  // namespace holdfast
