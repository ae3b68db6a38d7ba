// The helpers of steps.h. The program ends at the first step whose outcome is not the expected one.
#include "steps.h"

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char byte : bytes) {
    if (byte >= ' ' && byte <= '~') {
      text += byte;
      continue;
    }
    std::array<char, 8> code{};
    std::snprintf(code.data(), code.size(), "\\x%02x", static_cast<unsigned char>(byte));
    text += code.data();
  }
  return text + '"';
}

std::string shown_array(const redisContext* c, const redisReply* reply) {
  std::string text = "[";
  for (size_t i = 0; i < reply->elements; ++i) {
    text += (i > 0 ? ", " : "") + shown(c, reply->element[i]);
  }
  return text + "]";
}

}  // namespace

bool on_holdfast() { return std::string_view(environment("HOLDFAST")) == "1"; }
const char* host() { return environment("HOST"); }
int port() { return std::atoi(environment("PORT")); }

Connection connect_to_server() {
  const timeval limit{kEventLimitSeconds, 0};
  Connection c(redisConnectWithTimeout(host(), port(), limit));
  if (c == nullptr || c->err != 0) {
    fail("no connection");
  }
  redisSetTimeout(c.get(), limit);
  return c;
}

std::string shown(const redisContext* c, const redisReply* reply) {
  if (reply == nullptr) {
    return std::string("no reply: ") + c->errstr;
  }
  const std::string_view text(reply->str != nullptr ? reply->str : "", reply->len);
  switch (reply->type) {
    case REDIS_REPLY_STATUS:
      return std::string(text);
    case REDIS_REPLY_ERROR:
      return "error " + std::string(text);
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply->integer);
    case REDIS_REPLY_NIL:
      return "nil";
    case REDIS_REPLY_ARRAY:
      return shown_array(c, reply);
    default:
      return quoted(text);
  }
}

void step(std::string_view name, std::string_view got, std::string_view expected) {
  std::printf("%.*s: %.*s\n", static_cast<int>(name.size()), name.data(), static_cast<int>(got.size()),
              got.data());
  std::fflush(stdout);
  if (got != expected) {
    fail(std::string(name) + ": expected " + std::string(expected) + ", got " + std::string(got));
  }
}

void expect(redisContext* c, std::string_view expected, const char* format, ...) {
  va_list words;
  va_start(words, format);
  const Reply reply(static_cast<redisReply*>(redisvCommand(c, format, words)));
  va_end(words);
  step(format, shown(c, reply.get()), expected);
}

std::string ask(redisContext* c, const char* format, ...) {
  va_list words;
  va_start(words, format);
  const Reply reply(static_cast<redisReply*>(redisvCommand(c, format, words)));
  va_end(words);
  return shown(c, reply.get());
}

std::string next(redisContext* c) {
  void* reply = nullptr;
  redisGetReply(c, &reply);
  return shown(c, Reply(static_cast<redisReply*>(reply)).get());
}

void until(std::string_view what, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kEventLimitSeconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      fail(std::string(what) + ": did not happen in time");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}
