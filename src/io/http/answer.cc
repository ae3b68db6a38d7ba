// The fields of HTTP replies. All have those that keep a browser from running or guessing anything else.
#include "io/http/answer.h"

#include <fmt/format.h>

#include "io/http/json.h"

namespace holdfast {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

constexpr std::string_view kSafety =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
    "data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

}  // namespace

HttpAnswer refusal_of(int status) { return refusal_of(status, reason_of(status)); }

HttpAnswer refusal_of(int status, std::string_view why) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = fmt::format("{}\n", why);
  answer.asks_for_login = status == 401;
  return answer;
}

HttpAnswer json_refusal(int status, std::string_view why) {
  HttpAnswer answer = refusal_of(status, "");
  answer.type = kJsonType;
  answer.body = "{\"error\":";
  append_json_text(answer.body, why);
  answer.body += "}\n";
  return answer;
}

HttpAnswer json_refusal(const HttpAnswer& refusal) {
  const std::string_view line = refusal.content();
  return json_refusal(refusal.status, line.substr(0, line.find('\n')));
}

std::string answer_bytes(const HttpAnswer& answer, AnswerForm form) {
  std::string out = fmt::format("HTTP/1.{} {} {}\r\nContent-Type: {}\r\n", form.http11 ? 1 : 0,
                                answer.status, reason_of(answer.status), answer.type);
  if (!answer.streams && answer.status != 304)
    out += fmt::format("Content-Length: {}\r\n", answer.content().size());
  out += form.keeps_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  if (answer.etag.empty()) {
    out += "Cache-Control: no-store\r\n";
  } else {
    out += fmt::format("Cache-Control: no-cache\r\nETag: {}\r\n", answer.etag);
  }
  if (!answer.allow.empty()) out += fmt::format("Allow: {}\r\n", answer.allow);
  if (answer.asks_for_login) out += "WWW-Authenticate: Basic realm=\"holdfast\", charset=\"UTF-8\"\r\n";
  out += kSafety;
  out += "\r\n";
  if (!form.head && answer.status != 304) out += answer.content();
  return out;
}

}  // namespace holdfast
