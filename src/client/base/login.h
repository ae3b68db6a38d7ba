// User and password of a server: how to show a text that may contain them, where the environment has them,
// and what a server's rejection means. Never shows a password.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace holdfast::client {

struct Login {
  std::string user;  // empty: the server's default user
  std::string password;
};

// The variables that hold the login of all servers that have none in the address.
inline constexpr const char* kUserVariable = "HOLDFAST_USER";
inline constexpr const char* kPasswordVariable = "HOLDFAST_PASSWORD";

// Returns the values of the two variables; empty where a variable is unset, and in a setuid program.
Login environment_login();

// Whether the address, well-formed or not, may contain a password: it has an @, a setting that names a
// password or is unknown, or a port that is not a number.
bool may_have_secret(std::string_view address);
// Returns the address for an error or a log: the whole address, or only its scheme and "..." if it may
// contain a password.
std::string shown_address(std::string_view address);
// Overwrites logins and passwords in `word` with `*`, if `word` is an address or ends in one (as in
// "--servers=ADDRESS"). `is_address`: the word is known to be an address, also without a scheme.
void hide_logins(std::span<char> word, bool is_address = false);

// The same as is_login_refusal() of a ServerError, for its text.
bool is_login_refusal(std::string_view error);
// Returns the error, or the reason for a missing reply, with advice where it is known.
std::string with_advice(const std::string& error);

}  // namespace holdfast::client
