// The note of a hold that a verb acquires: who runs what, for people who look at the lock.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Returns "user@host[pid] program" for this process, at most LockOptions::kLongestNote bytes. It has only
// the file name of `command`: the arguments of a command may contain passwords.
std::string default_note(std::string_view command);

// Returns the first `most` bytes of `text`, or fewer if a UTF-8 character would be cut.
std::string cut_at_character(std::string_view text, size_t most);

}  // namespace holdfast
