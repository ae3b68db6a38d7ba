// The reader builds a reply in its final place: the root in the Core, each other value as the last element
// of its array. The array does not grow while that value is being read.
#include "client/transport/reply_reader.h"

#include <hiredis/read.h>

#include <cctype>
#include <cstring>
#include <utility>

#include "client/transport/resp3.h"

namespace holdfast::client {

struct ReplyReader::Core {
  Core(Protocol protocol, const ReplyLimits& at_most)
      : limits(at_most), hiredis(redisReaderCreateWithFunctions(makers()), redisReaderFree) {
    hiredis->privdata = this;
    if (protocol == Protocol::kResp3) resp3.emplace(limits.line_bytes);
  }

  static redisReplyObjectFunctions* makers();
  // Sets the error. Returns null, which hiredis' reader treats as lack of memory.
  void* refuse(const char* why) {
    error = why;
    return nullptr;
  }
  // Returns the place of the value that the reader has reached.
  Value& place(const redisReadTask& task) {
    if (task.parent == nullptr) return root;
    return static_cast<Value*>(task.parent->obj)->elements.emplace_back();
  }
  void* make_string(const redisReadTask& task, std::string_view text);
  void* make_array(const redisReadTask& task, size_t size);
  // For hiredis, whose version 0.14 passes the size as an int, and later ones as a size_t.
  template <typename Size>
  static void* on_array(const redisReadTask* task, Size size) noexcept {
    return static_cast<Core*>(task->privdata)->make_array(*task, static_cast<size_t>(size));
  }
  void check_rest();

  const ReplyLimits limits;
  const std::unique_ptr<redisReader, void (*)(redisReader*)> hiredis;
  std::optional<Resp3> resp3;
  Value root;
  size_t elements = 0;  // number of elements announced in the present reply
  size_t bytes = 0;     // total size of the texts in the present reply
  std::string error;
};

namespace {

constexpr const char* kTooManyElements = "the reply has more elements than the limit";
constexpr const char* kTooManyBytes = "the reply has more bytes than the limit";
constexpr const char* kLongLine = "protocol error, a line without end";

// Changes "Protocol error, ..." to "protocol error, ...", because the text becomes part of a sentence.
std::string reason(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

Value::Kind kind_of(int type) {
  switch (type) {
    case REDIS_REPLY_STATUS:
      return Value::Kind::kStatus;
    case REDIS_REPLY_ERROR:
      return Value::Kind::kError;
    default:
      return Value::Kind::kBulk;
  }
}

}  // namespace

void* ReplyReader::Core::make_string(const redisReadTask& task, std::string_view text) {
  const Value::Kind kind = kind_of(task.type);
  if (kind != Value::Kind::kBulk && text.size() > limits.line_bytes) return refuse(kLongLine);
  if (text.size() > limits.bytes - bytes) return refuse(kTooManyBytes);
  bytes += text.size();
  Value& value = place(task);
  value.kind = kind;
  value.text = text;
  return &value;
}

// Makes an empty array. It allocates memory as the elements arrive, not for the announced size.
void* ReplyReader::Core::make_array(const redisReadTask& task, size_t size) {
  if (size > limits.elements - elements) return refuse(kTooManyElements);
  elements += size;
  Value& value = place(task);
  value.kind = Value::Kind::kArray;
  return &value;
}

// Checks the limits of an incomplete reply. A long line is an error, because hiredis searches for the end
// of a line from the line's beginning each time.
void ReplyReader::Core::check_rest() {
  const size_t rest = hiredis->len - hiredis->pos;
  if (rest > limits.bytes - bytes) refuse(kTooManyBytes);
  if (rest <= limits.line_bytes) return;
  if (std::memchr(hiredis->buf + hiredis->pos, '\n', limits.line_bytes) == nullptr) refuse(kLongLine);
}

// Returns the functions for hiredis. hiredis does not change them, although its interface does not promise
// that. The Core owns the values, so freeObject does nothing.
redisReplyObjectFunctions* ReplyReader::Core::makers() {
  static const auto kCore = [](const redisReadTask* task) { return static_cast<Core*>(task->privdata); };
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions all{};
    all.createString = [](const redisReadTask* task, char* text, size_t size) noexcept -> void* {
      return kCore(task)->make_string(*task, {text, size});
    };
    all.createArray = on_array;
    all.createInteger = [](const redisReadTask* task, long long integer) noexcept -> void* {
      return &(kCore(task)->place(*task) = {Value::Kind::kInteger, integer, {}, {}});
    };
    all.createNil = [](const redisReadTask* task) noexcept -> void* {
      return &(kCore(task)->place(*task) = {Value::Kind::kNull, 0, {}, {}});
    };
    all.freeObject = [](void*) noexcept {};
    return all;
  }();
  return &functions;
}

ReplyReader::ReplyReader(Protocol protocol, const ReplyLimits& limits)
    : core_(std::make_unique<Core>(protocol, limits)) {}
ReplyReader::~ReplyReader() = default;
ReplyReader::ReplyReader(ReplyReader&&) noexcept = default;
ReplyReader& ReplyReader::operator=(ReplyReader&&) noexcept = default;

const std::string& ReplyReader::error() const { return core_->error; }

void ReplyReader::feed(std::string_view bytes) {
  if (!core_->error.empty()) return;
  if (!core_->resp3) {
    redisReaderFeed(core_->hiredis.get(), bytes.data(), bytes.size());
  } else if (const std::string translated = core_->resp3->translate(bytes); !translated.empty()) {
    redisReaderFeed(core_->hiredis.get(), translated.data(), translated.size());
  }
}

std::optional<Value> ReplyReader::next() {
  Core& core = *core_;
  if (!core.error.empty()) return std::nullopt;
  void* reply = nullptr;
  if (redisReaderGetReply(core.hiredis.get(), &reply) != REDIS_OK) {
    if (core.error.empty()) core.error = reason(core.hiredis->errstr);
    return std::nullopt;
  }
  if (reply == nullptr) {
    core.check_rest();
    return std::nullopt;
  }
  core.elements = core.bytes = 0;
  if (core.resp3 && core.resp3->take_push()) core.root.kind = Value::Kind::kPush;
  return std::exchange(core.root, {});
}

}  // namespace holdfast::client
