// hiredis's callbacks on a libuv loop: a pipeline, a transaction, pub/sub, and the end of a connection.
#include <hiredis/adapters/libuv.h>
#include <hiredis/async.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "steps.h"

namespace {

// The replies and messages that the callbacks of one connection have received.
struct Heard {
  std::vector<std::string> replies;
  std::string end;
};

Heard& heard_of(const redisAsyncContext* c) { return *static_cast<Heard*>(c->data); }

void note(redisAsyncContext* c, void* reply, void* /*data*/) {
  if (reply != nullptr) {
    heard_of(c).replies.push_back(shown(&c->c, static_cast<redisReply*>(reply)));
  }
}

void note_end(const redisAsyncContext* c, int status) {
  heard_of(c).end = status == REDIS_OK ? "as asked" : c->errstr;
}

redisAsyncContext* attach(uv_loop_t* loop, Heard& heard) {
  redisAsyncContext* c = redisAsyncConnect(host(), port());
  if (c == nullptr || c->err != 0) {
    std::exit(1);
  }
  c->data = &heard;
  redisLibuvAttach(c, loop);
  redisAsyncSetDisconnectCallback(c, note_end);
  return c;
}

void run_until(uv_loop_t* loop, const Heard& heard, size_t replies) {
  until("replies", [&] {
    uv_run(loop, UV_RUN_NOWAIT);
    return heard.replies.size() >= replies || !heard.end.empty();
  });
}

void run_until_end(uv_loop_t* loop, const Heard& heard) {
  until("the end", [&] {
    uv_run(loop, UV_RUN_NOWAIT);
    return !heard.end.empty();
  });
}

void test_commands(uv_loop_t* loop) {
  Heard heard;
  redisAsyncContext* c = attach(loop, heard);
  const std::vector<std::string> expected = {"OK",     "\"\\x00x\"", "OK",          "QUEUED",
                                             "QUEUED", "[1, 2]",     "error MY own"};
  redisAsyncCommand(c, note, nullptr, "SET async %b", "\0x", size_t{2});
  for (const char* command : {"GET async", "MULTI", "INCR async-n", "INCR async-n", "EXEC"}) {
    redisAsyncCommand(c, note, nullptr, command);
  }
  redisAsyncCommand(c, note, nullptr, "EVAL %s 0", "return redis.error_reply('MY own')");
  run_until(loop, heard, expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    step("async reply " + std::to_string(i), heard.replies.at(i), expected[i]);
  }
  redisAsyncDisconnect(c);
  run_until_end(loop, heard);
  step("async end", heard.end, "as asked");
}

void test_messages(uv_loop_t* loop) {
  Heard heard;
  Heard told;
  redisAsyncContext* subscriber = attach(loop, heard);
  redisAsyncContext* publisher = attach(loop, told);
  redisAsyncCommand(subscriber, note, nullptr, "SUBSCRIBE async-channel");
  redisAsyncCommand(subscriber, note, nullptr, "PSUBSCRIBE async-*");
  run_until(loop, heard, 2);
  redisAsyncCommand(publisher, note, nullptr, "PUBLISH async-channel %s", "hello");
  run_until(loop, told, 1);
  run_until(loop, heard, 4);
  const std::vector<std::string> expected = {"[\"subscribe\", \"async-channel\", 1]",
                                             "[\"psubscribe\", \"async-*\", 2]",
                                             "[\"message\", \"async-channel\", \"hello\"]",
                                             "[\"pmessage\", \"async-*\", \"async-channel\", \"hello\"]"};
  for (size_t i = 0; i < expected.size(); ++i) {
    step("async message " + std::to_string(i), heard.replies.at(i), expected[i]);
  }
  step("async publish", told.replies.at(0), "2");
  redisAsyncCommand(publisher, note, nullptr, "CLIENT KILL TYPE pubsub");
  run_until_end(loop, heard);
  step("a killed subscriber", heard.end, "Server closed the connection");
  redisAsyncDisconnect(publisher);
  run_until_end(loop, told);
}

}  // namespace

void test_async() {
  uv_loop_t loop;
  uv_loop_init(&loop);
  test_commands(&loop);
  test_messages(&loop);
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_loop_close(&loop);
}
