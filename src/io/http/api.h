// The paths below /api/v1/: each stands for one command, and its reply is JSON.
#pragma once

#include "io/http/routes.h"
#include "io/http/url.h"

namespace holdfast {

HttpAnswer answer_api(HttpContext& ctx, const ShellFacts& facts, const Url& url, const HttpRequest& request,
                      const Visitor& visitor);

}  // namespace holdfast
