// Numbers that nobody can guess: whoever names an owner or a lease may end it.
#pragma once

#include <cstdint>
#include <span>

namespace holdfast::client {

// From the system. Throws std::runtime_error where it has none.
void fill_random(std::span<uint8_t> bytes);

}  // namespace holdfast::client
