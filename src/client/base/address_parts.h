// What the two files that read an address share: address.cc has the servers, address_settings.cc what
// stands behind the `?`.
#pragma once

#include <string>
#include <string_view>

#include "client/base/address.h"
#include "client/base/login.h"

namespace holdfast::client {

// Throws std::invalid_argument. `text` is the whole address, of which nothing is shown that may be secret.
[[noreturn]] void refuse(std::string_view text, const std::string& why);
// The part in quotation marks; `instead` where the address may have a secret, as the part may be one of it.
std::string quoted(std::string_view text, std::string_view part, const char* instead);
// Cuts off what stands before the first `separator`, all where there is none.
std::string_view next_part(std::string_view& rest, char separator);
// As a URI has it: %40 is an @.
std::string decoded(std::string_view text, std::string_view word);

// The nodes of a cluster have the login of their address, see log_in().
void put(Address& address, const Login& login);
// Gives it to all servers that have no login of their own. Whether there was one.
bool log_in(Place& place, const Login& login);
// All that stands behind the `?`. The servers of `place` are known.
void read_settings(Place& place, std::string_view text, std::string_view settings);

}  // namespace holdfast::client
