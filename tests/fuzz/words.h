// The dictionary for the engine: possible arguments of commands, so that the bytes become meaningful
// requests.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/command/command.h"

namespace holdfast::fuzz {

inline constexpr std::array<std::string_view, 7> kScripts = {
    "return redis.call(unpack(ARGV))",
    "return {redis.pcall(unpack(ARGV)), KEYS, {ok='fine'}, {err='bad'}, 3.7, false, {double=1.5}}",
    "redis.call('set', 'k', ARGV[1] or '') redis.setresp(3) return redis.call('hgetall', 'h')",
    "while true do redis.call('incr', 'n') end",
    "while true do end",
    "#!lua flags=no-writes\nreturn redis.call('get', 'k')",
    "return redis.call('lock', 'k', 'o1', '50')",
};

// Few keys and owners, so that requests collide; numbers near limits.
inline constexpr std::array<std::string_view, 70> kWords = {
    "k",
    "l",
    "h",
    "n",
    "holdfast:token:{k}",
    "o1",
    "o2",
    "o1.1",
    "o1.2",
    "o2.1",
    "*",
    "",
    "holdfast:lock",
    "0",
    "1",
    "2",
    "3",
    "9223372036854775807",
    "5",
    "10",
    "50",
    "1000",
    "9007199254740991",
    "-1",
    "-2",
    "15",
    "16",
    "18446744073709551615",
    "k*",
    "[^a-z",
    "1.5",
    "1e300",
    "1000000000000",
    "f",
    "g",
    "z",
    "s",
    "w",
    "-inf",
    "+inf",
    "(1",
    "[f",
    "(g",
    "-",
    "+",
    "0.001",
    "-3.5e-2",
    "100",
    "-9223372036854775807",
    "lease1",
    "inf",
    "o:o1",
    "KEA",
    "AKE",
    "maxmemory",
    "b",
    "notify-keyspace-events",
    "hash-max-listpack-entries",
    "maxmemory-policy",
    "127.0.0.1:1",
    "normal",
    "pubsub",
    "__keyspace@0__:k",
    "__keyevent@0__:expired",
    "1 1 -1 0 0 0 0 0",
    "default",
    "yes",
    "9555e8555c62dcfd",
    "#!lua name=l\nredis.register_function('f', function(k, a) return redis.call(unpack(a)) end)",
    "#!lua name=m\nredis.register_function{function_name='g', callback=function(k) return k end}",
};

// Returns these words and the capital words of all commands' syntax.
inline std::vector<std::string> all_words() {
  std::vector<std::string> words(kWords.begin(), kWords.end());
  words.insert(words.end(), kScripts.begin(), kScripts.end());
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (const Command& command : all_commands()) {
    std::string_view rest = command.syntax;
    while (!rest.empty()) {
      const size_t begin = std::min(rest.find_first_of(kLetters), rest.size());
      rest.remove_prefix(begin);
      const std::string word(rest.substr(0, rest.find_first_not_of(kLetters)));
      rest.remove_prefix(word.size());
      if (word.size() > 1 && std::ranges::find(words, word) == words.end()) words.push_back(word);
    }
  }
  return words;
}

}  // namespace holdfast::fuzz
