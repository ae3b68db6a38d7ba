// User and password of a server: how a text that may hold them is shown, where the environment has them,
// and what a server's refusal of them means. Never shows a password.
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

// What the two variables say; an empty one counts as unset. In a setuid program nothing.
Login environment_login();

// Whether a password may stand in this address, also in one that is not well-formed: it has an @, a setting
// that names a password or is unknown, or a port that is no number.
bool may_have_secret(std::string_view address);
// The address for an error or a log: whole, or where may_have_secret(), of it the scheme.
std::string shown_address(std::string_view address);
// Overwrites logins and passwords in `word`, where that is or ends in an address ("--servers=ADDRESS",
// too).
void hide_logins(std::span<char> word);

// Whether the server rejects the login, or asks for one, or the user lacks a right: a retry does not help.
bool is_login_refusal(std::string_view error);
// The error, with what to do about it where it is one of those.
std::string with_advice(const std::string& error);

}  // namespace holdfast::client
