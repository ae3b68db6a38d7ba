// One HTTP request from bytes, within limits. Hides the library that parses; knows no socket and no path.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace holdfast {

inline constexpr size_t kMaxHeaderBytes = size_t{8} << 10;  // the request line and all header fields
inline constexpr size_t kMaxTargetBytes = size_t{4} << 10;  // path and query
inline constexpr size_t kMaxBodyBytes = size_t{8} << 10;

// The parts that the server uses, as the client sent them.
struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // "/api/v1/info?db=0"
  std::string host;
  std::string origin;
  std::string authorization;
  std::string accept;
  std::string fetch_site;     // Sec-Fetch-Site: where the page comes from that makes a browser send it
  bool of_dashboard = false;  // X-Requested-With: holdfast, which asks for the login itself
  bool http11 = false;
  bool keep_alive = false;

  bool is_head() const { return method == "HEAD"; }
  bool is_post() const { return method == "POST"; }
};

class RequestReader {
 public:
  enum class Status { kMore, kDone, kBroken };

  RequestReader();
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Reads the input of one request, from the byte after the last one that it used. Adds the number of bytes
  // that it used to `used`: the caller passes the other bytes again, with those that follow. The body is
  // checked and dropped.
  Status feed(std::string_view input, size_t& used);

  // After kDone.
  const HttpRequest& request() const;
  // After kBroken: the status of the reply.
  int status() const { return status_; }

  // Begins the next request.
  void reset();

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  int status_ = 0;
  size_t header_bytes_ = 0;  // consumed of an unfinished header
};

}  // namespace holdfast
