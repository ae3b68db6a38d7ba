// Requests of the HTTP door. Any bytes are rejected, or are requests that get a reply with a known status;
// a JSON reply is valid. The pieces in which the bytes arrive do not matter.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/engines.h"
#include "fuzz/targets.h"
#include "io/http/request_parser.h"
#include "io/http/routes.h"

namespace holdfast::fuzz {
namespace {

// What the reader made of the input: each request as text.
std::vector<std::string> read_all(std::string_view input, size_t piece,
                                  std::vector<HttpRequest>* requests) {
  std::vector<std::string> seen;
  std::string rest;
  RequestReader reader;
  while (true) {
    size_t used = 0;
    const RequestReader::Status status = reader.feed(rest, used);
    must(used <= rest.size(), "no more is used than there is");
    rest.erase(0, used);
    if (status == RequestReader::Status::kBroken) {
      must(reader.status() >= 400, "a rejection has a status");
      return seen;  // a fault in an incomplete header may be seen earlier or later
    }
    if (status == RequestReader::Status::kDone) {
      const HttpRequest& r = reader.request();
      seen.push_back(r.method + ' ' + r.target + ' ' + r.host + ' ' + r.origin + ' ' + r.authorization);
      if (requests != nullptr) requests->push_back(r);
      reader.reset();
      continue;
    }
    if (input.empty()) return seen;
    rest += input.substr(0, piece);
    input.remove_prefix(std::min(piece, input.size()));
  }
}

void check_answer(const HttpAnswer& answer) {
  for (const int known : {200, 400, 401, 403, 404, 405, 503}) {
    if (answer.status != known) continue;
    must(answer.type != kJsonType || nlohmann::json::accept(answer.content()), "JSON is valid");
    must(!answer_bytes(answer, {}).empty(), "each answer has bytes");
    return;
  }
  must(false, "the status is known");
}

}  // namespace

void fuzz_http(std::string_view bytes) {
  Source source(bytes);
  const size_t piece = size_t{source.byte()} + 1;
  const bool local = !source.one_in(4);
  std::vector<HttpRequest> requests;
  const std::vector<std::string> whole = read_all(source.rest(), SIZE_MAX, &requests);
  must(read_all(source.rest(), piece, nullptr) == whole, "pieces do not matter");

  Engine engine(engine_config());
  Effects fx;
  const Now now = time_at(0);
  const ConnId other = engine.open("127.0.0.1:1", "127.0.0.1:2", now);
  const std::string_view lock[] = {"LOCK", "k<\xff\"", "\xe2\x80\xae o", "1000"};
  engine.apply(other, lock, now, fx);
  const ShellMetrics metrics;
  HttpContext ctx{engine, fx, now, {true}};
  const Visitor visitor{"127.0.0.1:3", "127.0.0.1:7380", local, false};
  for (const HttpRequest& request : requests)
    check_answer(answer_request(ctx, {metrics, {now.mono, 7379}}, request, visitor));
  engine.check_invariants();
}

}  // namespace holdfast::fuzz
