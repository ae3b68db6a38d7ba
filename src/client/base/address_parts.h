// The functions that both address parsers share: address.cc parses the servers, address_settings.cc the
// settings behind the `?`.
#pragma once

#include <string>
#include <string_view>

#include "client/base/address.h"
#include "client/base/login.h"

namespace holdfast::client {

// Throws std::invalid_argument. `text` is the whole address; the message leaves out parts that may be
// secret.
[[noreturn]] void refuse(std::string_view text, const std::string& why);
// Returns the part in quotation marks. If the address may contain a secret, returns `instead`, because the
// part may belong to it.
std::string quoted(std::string_view text, std::string_view part, const char* instead);
// Removes and returns the text before the first `separator`; the whole text if there is none.
std::string_view next_part(std::string_view& rest, char separator);
// Decodes percent escapes as in a URI: %40 is @.
std::string decoded(std::string_view text, std::string_view word);

// Sets the login of one address. log_in() also sets it for further nodes of a cluster.
void put(Address& address, const Login& login);
// Sets the login for all servers without a login of their own. Returns whether there was such a server.
bool log_in(ClientConfig& config, const Login& login);
// Reads all settings behind the `?`. Call it after the servers of `config` are parsed.
void read_settings(ClientConfig& config, std::string_view text, std::string_view settings);

}  // namespace holdfast::client
