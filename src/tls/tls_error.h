// The reason of an OpenSSL failure as text.
#pragma once

#include <string>

namespace holdfast {

// Returns the latest reason in this thread's error queue; "unknown" if there is none. Clears the queue: a
// remaining entry would be taken for the failure of a later call.
std::string take_tls_error();

}  // namespace holdfast
