// Makes the TLS context from the options: files, and the check of client certificates. Errors use the
// options' names.
#pragma once

#include <memory>
#include <optional>

#include "core/base/config.h"
#include "io/config/options.h"
#include "io/os/result.h"
#include "tls/tls_context.h"

namespace holdfast {

// Whether a port uses TLS.
bool has_tls(const Options& options);

// Reads the TLS files and returns the context for new connections. Returns null if no port uses TLS.
Result<std::shared_ptr<const TlsContext>> make_tls(const Options& options);

// Applies CONFIG SET: keeps `tls` if `changes` has no TLS option. Otherwise it reads the files again, even
// if their names are unchanged. If it returns a refusal, `tls` is unchanged.
std::optional<ConfigRefusal> reload_tls(const Options& options, const ConfigChanges& changes,
                                        std::shared_ptr<const TlsContext>& tls);

}  // namespace holdfast
