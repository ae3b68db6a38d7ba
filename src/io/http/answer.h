// One HTTP reply: its parts, and its bytes. Knows no socket.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
inline constexpr std::string_view kJsonType = "application/json; charset=utf-8";

struct HttpAnswer {
  int status = 200;
  std::string_view type = kPlainText;
  std::string body;
  // For a body that lives as long as the process, in place of `body`.
  std::string_view fixed_body;
  std::string_view allow;       // of status 405: the methods
  std::string_view etag;        // the browser may keep it, and asks whether it has changed
  bool asks_for_login = false;  // of status 401
  bool waits_for_disk = false;  // it promises a change, and leaves when the disk has the change
  std::string user;             // of the events
  bool streams = false;         // the events follow; the connection stays open

  std::string_view content() const { return body.empty() ? fixed_body : std::string_view(body); }
};

// A reply of one line of text that says nothing but what its status means.
HttpAnswer refusal_of(int status);
// The same with a text of the server's own.
HttpAnswer refusal_of(int status, std::string_view why);
HttpAnswer json_refusal(int status, std::string_view why);
// The same refusal as JSON.
HttpAnswer json_refusal(const HttpAnswer& refusal);

// How the reply is sent.
struct AnswerForm {
  bool http11 = true;
  bool keeps_alive = false;
  bool head = false;  // without the body
};

// The reply's bytes: status line, fields, body.
std::string answer_bytes(const HttpAnswer& answer, AnswerForm form);

}  // namespace holdfast
