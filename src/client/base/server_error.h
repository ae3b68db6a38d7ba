// The code of a server's error, from its text. The only place that reads such texts.
#pragma once

#include <string_view>

#include "client/base/value.h"
#include "holdfast/error.h"

namespace holdfast::client {

// `error`: the text of an error reply, as in "NOAUTH Authentication required."; not empty.
ServerError server_error_of(std::string_view error);

// kNone if the value is not an error.
inline ServerError server_error_of(const Value& value) {
  return value.kind == Value::Kind::kError ? server_error_of(std::string_view(value.text))
                                           : ServerError::kNone;
}

// Whether the server rejects the login, requires one, or denies a right to the user: a retry does not help.
constexpr bool is_login_refusal(ServerError error) {
  return error == ServerError::kNoLogin || error == ServerError::kWrongLogin ||
         error == ServerError::kNoRight;
}

}  // namespace holdfast::client
