// HTTP requests, by the parser of Boost.Beast. It rejects what a proxy in front might read in another way:
// two lengths, a length beside chunks, unknown encodings, a second Host.
#include "io/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <optional>

namespace holdfast {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using Error = beast::error_code;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

// The size of the header, as far as it is there. The library may have consumed the first lines of it.
size_t header_size(std::string_view rest, size_t consumed) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  if (consumed > 0 && rest.starts_with("\r\n")) return consumed + 2;
  const size_t end = rest.find(kEnd);
  return consumed + (end == std::string_view::npos ? rest.size() : end + kEnd.size());
}

}  // namespace

// Collects the fields that the server uses.
struct RequestReader::Parser : http::basic_parser<true> {
  Parser() {
    header_limit(2 * kMaxHeaderBytes);  // feed() keeps the real limit; the library's leaves parts out
    body_limit(kMaxBodyBytes);
    eager(true);
  }

  HttpRequest request;
  bool has_host = false;
  bool has_encoding = false;
  bool has_authorization = false;
  bool has_body = false;
  int status = 0;  // of a fault that the library does not see

 private:
  void reject(int code, Error& error) {
    status = code;
    error = http::error::bad_value;
  }

  // A field that must not be there twice.
  void take_once(bool& has, std::string_view value, std::string& to, Error& error) {
    if (has) return reject(400, error);
    has = true;
    to = value;
  }

  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                       Error& error) override {
    request.method = view(method);
    request.target = view(target);
    request.http11 = version == 11;
    if (target.size() > kMaxTargetBytes) return reject(414, error);
    if (!request.target.starts_with('/')) return reject(400, error);
    if (version != 10 && version != 11) reject(400, error);
  }

  void on_response_impl(int, beast::string_view, int, Error&) override {}

  void on_field_impl(http::field field, beast::string_view name, beast::string_view text,
                     Error& error) override {
    const std::string_view value = view(text);
    std::string ignored;
    switch (field) {
      case http::field::host:
        return take_once(has_host, value, request.host, error);
      case http::field::authorization:
        return take_once(has_authorization, value, request.authorization, error);
      case http::field::transfer_encoding:
        if (!request.http11 || !beast::iequals(text, "chunked")) return reject(400, error);
        return take_once(has_encoding, value, ignored, error);
      case http::field::origin:
        request.origin += value;  // two of them are no origin
        break;
      case http::field::accept:
        request.accept.append(value).push_back(',');
        break;
      default:
        if (beast::iequals(name, "Sec-Fetch-Site")) request.fetch_site += value;
        if (beast::iequals(name, "X-Requested-With")) request.of_dashboard = value == "holdfast";
        break;
    }
  }

  // Newer versions of the library have this function, for fields behind a body in chunks. The server uses
  // none of these fields.
  void on_trailer_field_impl(http::field, beast::string_view, beast::string_view, Error&) {}

  void on_header_impl(Error& error) override {
    request.keep_alive = keep_alive();
    if (request.http11 && !has_host) return reject(400, error);
    has_body = chunked() || content_length().value_or(0) > 0;
    if (has_body && !request.is_post()) reject(400, error);
  }

  void on_body_init_impl(const boost::optional<uint64_t>&, Error&) override {}
  size_t on_body_impl(beast::string_view body, Error&) override { return body.size(); }
  void on_chunk_header_impl(uint64_t, beast::string_view, Error&) override {}
  size_t on_chunk_body_impl(uint64_t, beast::string_view body, Error&) override { return body.size(); }
  void on_finish_impl(Error&) override {}
};

RequestReader::Status RequestReader::feed(std::string_view input, size_t& used) {
  while (!parser_->is_done()) {
    Error error;
    const std::string_view rest = input.substr(used);
    if (!parser_->is_header_done() && header_size(rest, header_bytes_) > kMaxHeaderBytes) {
      const bool has_line =
          header_bytes_ > 0 || rest.substr(0, kMaxTargetBytes).find('\n') != std::string_view::npos;
      status_ = has_line ? 431 : 414;
      return Status::kBroken;
    }
    const size_t put = parser_->put(boost::asio::buffer(rest.data(), rest.size()), error);
    used += put;
    header_bytes_ += put;
    if (error == http::error::need_more) return Status::kMore;
    if (error) {
      const int fault = error == http::error::body_limit ? 413 : 400;
      status_ = parser_->status != 0 ? parser_->status : fault;
      return Status::kBroken;
    }
    if (used == input.size() && !parser_->is_done()) return Status::kMore;
  }
  return Status::kDone;
}

RequestReader::RequestReader() : parser_(std::make_unique<Parser>()) {}
RequestReader::~RequestReader() = default;

void RequestReader::reset() {
  parser_ = std::make_unique<Parser>();
  status_ = 0;
  header_bytes_ = 0;
}

const HttpRequest& RequestReader::request() const { return parser_->request; }

}  // namespace holdfast
