// Probes, metrics, the files of the dashboard. The rest of the paths is in api.cc.
#include "io/http/routes.h"

#include <fmt/format.h>

#include "core/engine/readiness.h"
#include "io/http/api.h"
#include "io/http/page_files.h"
#include "io/http/url.h"

namespace holdfast {
namespace {

constexpr std::string_view kReads = "GET, HEAD";
constexpr std::string_view kBadTarget =
    "the path or the query is malformed: a wrong %NN, or a parameter twice";

HttpAnswer wrong_method(std::string_view allowed) {
  HttpAnswer answer = refusal_of(405);
  answer.allow = allowed;
  return answer;
}

// As etcd shows them.
std::string check_lines(const std::vector<ReadyCheck>& checks) {
  std::string lines;
  for (const ReadyCheck& check : checks)
    lines += fmt::format("[{}]{} {}\n", check.ok ? '+' : '-', check.name, check.ok ? "ok" : check.why);
  return lines;
}

Access allow_info(HttpContext& ctx, const HttpRequest& request, const Visitor& visitor) {
  static constexpr std::string_view kInfo[] = {"INFO"};
  Engine& engine = ctx.engine;
  return check_command(engine, ctx.now, log_in(engine, ctx.now, request, visitor, ctx.rules), visitor,
                       kInfo);
}

HttpAnswer answer_ready(HttpContext& ctx, const Url& url, const HttpRequest& request,
                        const Visitor& visitor) {
  const std::vector<ReadyCheck> checks = readiness(ctx.engine, ctx.now);
  const bool ready = is_ready(checks);
  const bool verbose = url.query.contains("verbose");
  if (verbose && !is_on_this_machine(request, visitor)) {
    if (Access access = allow_info(ctx, request, visitor); !access.allowed()) return access.refusal;
  }
  HttpAnswer answer;
  answer.status = ready ? 200 : 503;
  answer.body = (verbose ? check_lines(checks) : "") + (ready ? "ready\n" : "not ready\n");
  return answer;
}

HttpAnswer answer_metrics(HttpContext& ctx, const ShellFacts& facts, const HttpRequest& request,
                          const Visitor& visitor) {
  if (Access access = allow_info(ctx, request, visitor); !access.allowed()) return access.refusal;
  const bool open = request.accept.find("application/openmetrics-text") != std::string::npos;
  HttpAnswer answer;
  answer.type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                     : "text/plain; version=0.0.4; charset=utf-8";
  write_metrics(ctx.engine, ctx.now, facts.metrics,
                open ? MetricsFormat::kOpenMetrics : MetricsFormat::kPrometheus, answer.body);
  return answer;
}

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : page_files()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

HttpAnswer answer_page(const PageFile& file) {
  HttpAnswer answer;
  answer.type = file.content_type;
  answer.fixed_body = file.bytes;
  return answer;
}

}  // namespace

HttpAnswer answer_request(HttpContext& ctx, const ShellFacts& facts, const HttpRequest& request,
                          const Visitor& visitor) {
  const std::optional<Url> url = parse_url(request.target);
  const bool of_api = request.target.starts_with("/api/");
  if (!url) return of_api ? json_refusal(400, kBadTarget) : refusal_of(400, kBadTarget);
  if (url->path.starts_with("/api/v1/")) {
    HttpAnswer answer = answer_api(ctx, facts, *url, request, visitor);
    if (request.of_dashboard) answer.asks_for_login = false;  // the browser would ask beside the dashboard
    return answer;
  }
  const PageFile* const file = find_page_file(url->path);
  const bool known = url->path == "/livez" || url->path == "/readyz" || url->path == "/metrics";
  if (file == nullptr && !known) return of_api ? json_refusal(404, "no such path") : refusal_of(404);
  if (request.method != "GET" && !request.is_head()) return wrong_method(kReads);
  if (file != nullptr) return answer_page(*file);
  if (url->path == "/readyz") return answer_ready(ctx, *url, request, visitor);
  if (url->path == "/metrics") return answer_metrics(ctx, facts, request, visitor);
  HttpAnswer alive;
  alive.body = "alive\n";
  return alive;
}

}  // namespace holdfast
