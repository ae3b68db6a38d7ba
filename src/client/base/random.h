// Unpredictable random numbers: any client that knows the name of an owner or a lease can end it.
#pragma once

#include <cstdint>
#include <span>

namespace holdfast::client {

// Fills `bytes` with random bytes of the kernel. Throws std::runtime_error if the kernel provides none.
void fill_random(std::span<uint8_t> bytes);

}  // namespace holdfast::client
