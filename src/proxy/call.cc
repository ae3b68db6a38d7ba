#include "proxy/call.h"

#include <utility>

#include "proxy/gateway.h"
#include "proxy/owner_name.h"

namespace holdfast::proxy {

std::optional<DurationMs> Call::limit() const { return gateway_.call_limit(); }

void Call::answer(std::string_view reply) {
  if (dropped_) return;
  gateway_.answer(conn_, reply);
}

void Call::answer_error(std::string_view text) {
  Buffer out;
  Reply(out, 2).error(text);
  answer(out.view());
}

void Call::fail(std::string_view error) {
  if (!dropped_) gateway_.discard(conn_);
  answer_error(error);
}

void Call::answer_integer(int64_t value) {
  Buffer out;
  Reply(out, 2).integer(value);
  answer(out.view());
}

void Call::fail_unavailable(const std::vector<std::string>& failed) {
  std::string text = "UNAVAILABLE " + std::to_string(failed.size()) + " of " +
                     std::to_string(gateway_.quorum().size()) + " servers did not answer";
  for (size_t i = 0; i < failed.size(); ++i) text += (i == 0 ? ": " : ", ") + failed[i];
  fail(text);
}

std::string refuse_ttl(const Gateway& gateway, std::optional<DurationMs> ttl) {
  const DurationMs longest = gateway.longest_ttl();
  if (!ttl || *ttl <= longest) return {};
  return "ERR holdfast-proxy takes a TTL of at most " + std::to_string(longest.count) +
         " ms: half of --untimed-ttl";
}

std::string long_value_error() {
  return "ERR holdfast-proxy takes owners and values of at most " + std::to_string(kMostValueBytes) +
         " bytes";
}

namespace {

class ErrorCall final : public Call {
 public:
  ErrorCall(Gateway& gateway, ConnId conn, std::string text)
      : Call(gateway, conn), text_(std::move(text)) {}
  void begin() override { fail(text_); }

 private:
  const std::string text_;
};

}  // namespace

std::shared_ptr<Call> make_error_call(Gateway& gateway, ConnId conn, std::string text) {
  return std::make_shared<ErrorCall>(gateway, conn, std::move(text));
}

}  // namespace holdfast::proxy
