// What OpenSSL says of a failure, as text.
#pragma once

#include <string>

namespace holdfast {

// The latest reason in the error queue of this thread, which is empty afterwards: what is left there would
// be taken for the failure of a later call. "unknown" if there is none.
std::string take_tls_error();

}  // namespace holdfast
