// Argument syntax: the tree parsed from a row's text, and its form in COMMAND DOCS, byte for byte that of
// Redis 7.0.
#include "core/command/syntax.h"

#include <doctest/doctest.h>

#include <string>

namespace holdfast {
namespace {

// Returns the bytes of COMMAND DOCS' "arguments" value.
std::string docs(std::string_view syntax, int protocol) {
  Buffer buffer;
  Reply reply(buffer, protocol);
  write_arguments(reply, parse_syntax(syntax));
  return std::string(buffer.view());
}

// Returns a short text for a tree: name:type, TOKEN= before, ? optional, + multiple, ++ with its token,
// {parts}.
std::string picture(const std::vector<ArgNode>& nodes) {
  static constexpr const char* kTypes[] = {"str",  "int",  "dbl",   "key",  "pat",
                                           "time", "pure", "oneof", "block"};
  std::string text;
  for (const ArgNode& node : nodes) {
    if (!text.empty()) text += ' ';
    if (!node.token.empty()) text += node.token + "=";
    text += node.name + ":" + kTypes[static_cast<size_t>(node.type)];
    if (node.key_spec >= 0) text += std::to_string(node.key_spec);
    if (node.optional) text += '?';
    if (node.multiple) text += node.multiple_token ? "++" : "+";
    if (!node.arguments.empty()) text += "{" + picture(node.arguments) + "}";
  }
  return text;
}

std::string picture(std::string_view syntax) { return picture(parse_syntax(syntax)); }

}  // namespace

TEST_CASE("parse_syntax: an empty text gives no arguments") {
  CHECK(parse_syntax("").empty());
  CHECK(docs("", 3) == "*0\r\n");
}

TEST_CASE("parse_syntax: a name determines its type") {
  CHECK(picture("key owner ttl pattern") == "key:key0 owner:str ttl:int pattern:pat");
  CHECK(picture("timeout unix-time-seconds") == "timeout:dbl unix-time-seconds:time");
}

TEST_CASE("parse_syntax: each key has its own key specification") {
  CHECK(picture("source destination") == "source:key0 destination:key1");
}

TEST_CASE("parse_syntax: a token belongs to the name after it, or stands alone") {
  CHECK(picture("[GET] [EX seconds]") == "GET=get:pure? EX=seconds:int?");
  CHECK(picture("ON | OFF") == "on_off:oneof{ON=on:pure OFF=off:pure}");
  CHECK(picture("[TYPE <NORMAL | PUBSUB>]") ==
        "TYPE=normal_pubsub:oneof?{NORMAL=normal:pure PUBSUB=pubsub:pure}");
  CHECK(picture("[LIMIT <offset count>]") == "LIMIT=offset_count:block?{offset:int count:int}");
}

TEST_CASE("parse_syntax: repetitions mark the part before them") {
  CHECK(picture("key [key ...]") == "key:key0+");
  CHECK(picture("key value [key value ...]") == "key_value:block+{key:key0 value:str}");
  CHECK(picture("[section [section ...]]") == "section:str?+");
  CHECK(picture("[ID client-id [client-id ...]]") == "ID=client-id:int?+");
  CHECK(picture("[GET pattern [GET pattern ...]]") == "GET=pattern:pat?++");
  CHECK(picture("id ttl key value [key value ...]") ==
        "id:str ttl:int key_value:block+{key:key0 value:str}");
}

TEST_CASE("parse_syntax: LOCK's options") {
  CHECK(
      picture(
          "key owner ttl [SHARED | LIMIT limit] [WAIT milliseconds [ASYNC]] [SESSION] [DELAY milliseconds] "
          "[TOKEN hint] [NOTE text]") ==
      "key:key0 owner:str ttl:int shared_limit:oneof?{SHARED=shared:pure LIMIT=limit:int} "
      "milliseconds_async:block?{WAIT=milliseconds:int ASYNC=async:pure?} SESSION=session:pure? "
      "DELAY=milliseconds:int? TOKEN=hint:int? NOTE=text:str?");
}

TEST_CASE("parse_syntax: SET's options") {
  CHECK(picture(
            "key value [NX|XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | KEEPTTL]") ==
        "key:key0 value:str nx_xx:oneof?{NX=nx:pure XX=xx:pure} GET=get:pure? "
        "seconds_milliseconds_unix-time-seconds_keepttl:oneof?{EX=seconds:int PX=milliseconds:int "
        "EXAT=unix-time-seconds:time KEEPTTL=keepttl:pure}");
}

TEST_CASE("parse_syntax: optional parts nest") {
  CHECK(picture("[protover [AUTH <username password>] [SETNAME clientname]]") ==
        "protover_username_password_clientname:block?{protover:int "
        "AUTH=username_password:block?{username:str password:str} SETNAME=clientname:str?}");
}

TEST_CASE("write_arguments: MSETNX as Redis 7.0 writes it in RESP2") {
  CHECK(docs("key value [key value ...]", 2) ==
        "*1\r\n*8\r\n$4\r\nname\r\n$9\r\nkey_value\r\n$4\r\ntype\r\n$5\r\nblock\r\n$5\r\nflags\r\n*1\r\n+"
        "multiple\r\n"
        "$9\r\narguments\r\n*2\r\n*6\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n$14\r\nkey_"
        "spec_index\r\n"
        ":0\r\n*4\r\n$4\r\nname\r\n$5\r\nvalue\r\n$4\r\ntype\r\n$6\r\nstring\r\n");
}

TEST_CASE("write_arguments: EVAL as Redis 7.0 writes it in RESP3") {
  CHECK(docs("script numkeys [key [key ...]] [arg [arg ...]]", 3) ==
        "*4\r\n%2\r\n$4\r\nname\r\n$6\r\nscript\r\n$4\r\ntype\r\n$6\r\nstring\r\n%2\r\n$4\r\nname\r\n$"
        "7\r\nnumkeys\r\n"
        "$4\r\ntype\r\n$7\r\ninteger\r\n%4\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n$14\r\n"
        "key_spec_index\r\n:0\r\n$5\r\nflags\r\n~2\r\n+optional\r\n+multiple\r\n%3\r\n$4\r\nname\r\n$"
        "3\r\narg\r\n$4\r\n"
        "type\r\n$6\r\nstring\r\n$5\r\nflags\r\n~2\r\n+optional\r\n+multiple\r\n");
}

TEST_CASE("write_arguments: CLIENT REPLY as Redis 7.0 writes it in RESP3") {
  CHECK(
      docs("ON | OFF | SKIP", 3) ==
      "*1\r\n%3\r\n$4\r\nname\r\n$11\r\non_off_skip\r\n$4\r\ntype\r\n$5\r\noneof\r\n$9\r\narguments\r\n*"
      "3\r\n"
      "%3\r\n$4\r\nname\r\n$2\r\non\r\n$4\r\ntype\r\n$10\r\npure-token\r\n$5\r\ntoken\r\n$2\r\nON\r\n"
      "%3\r\n$4\r\nname\r\n$3\r\noff\r\n$4\r\ntype\r\n$10\r\npure-token\r\n$5\r\ntoken\r\n$3\r\nOFF\r\n"
      "%3\r\n$4\r\nname\r\n$4\r\nskip\r\n$4\r\ntype\r\n$10\r\npure-token\r\n$5\r\ntoken\r\n$4\r\nSKIP\r\n");
}

}  // namespace holdfast
