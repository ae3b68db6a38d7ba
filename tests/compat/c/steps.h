// Helpers of the hiredis case: connections, replies as text, steps that print and check their outcome, and
// waits for events.
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

// True if the server is Holdfast.
bool on_holdfast();
const char* host();
int port();

// Ends the program if the connection fails.
Connection connect_to_server();

// Returns a reply on one line: strings quoted, with all their bytes; "no reply: ..." without a reply.
std::string shown(const redisContext* c, const redisReply* reply);

// Prints `name: outcome`, which must be the same on every run. Ends the program if the outcome is not the
// expected one.
void step(std::string_view name, std::string_view got, std::string_view expected);

// A step of one command, in hiredis's format.
void expect(redisContext* c, std::string_view expected, const char* format, ...);

// A step for the next reply to an earlier request, or for the next message of a subscriber.
std::string next(redisContext* c);

// Polls until the condition is true. Ends the program if it does not become true in time.
void until(std::string_view what, const std::function<bool()>& condition);

// Returns the reply to a command, without a step.
std::string ask(redisContext* c, const char* format, ...);

// The same commands and pub/sub through hiredis's callbacks, on a libuv loop.
void test_async();
