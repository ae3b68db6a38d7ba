// What the hiredis case shares: connections, replies as text, steps that are printed and checked, waiting
// for an event.
#pragma once

#include <hiredis/hiredis.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct ConnectionCloser {
  void operator()(redisContext* c) const { redisFree(c); }
};
struct ReplyFreer {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Connection = std::unique_ptr<redisContext, ConnectionCloser>;
using Reply = std::unique_ptr<redisReply, ReplyFreer>;

constexpr int kEventLimitSeconds = 20;

// True where Holdfast is on the other side.
bool on_holdfast();
const char* host();
int port();

// Ends the program where there is no connection.
Connection connect_to_server();

// A reply on one line: strings quoted, with all their bytes; "no reply: ..." where there is none.
std::string shown(const redisContext* c, const redisReply* reply);

// Prints `name: outcome`, which must be the same on every run, and ends the program where it is another
// one.
void step(std::string_view name, std::string_view got, std::string_view expected);

// A step of one command, in hiredis's format.
void expect(redisContext* c, std::string_view expected, const char* format, ...);

// The next reply that was asked for before, or that a subscriber gets.
std::string next(redisContext* c);

// Asks until the condition holds; ends the program where it does not come.
void until(std::string_view what, const std::function<bool()>& condition);

// What a command answers, without a step of its own.
std::string ask(redisContext* c, const char* format, ...);

// The same commands and pub/sub through hiredis's callbacks, on a libuv loop.
void test_async();
