// Wrong clocks for processes under test, and the right clock for their checks.
#pragma once

#include <cstdint>

namespace holdfast::integration {

// The time of a clock that all processes of the machine share. HOLDFAST_TEST_CLOCK does not change it.
int64_t true_now_ns();

}  // namespace holdfast::integration
