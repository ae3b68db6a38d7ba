#include "client/base/validity.h"

#include <doctest/doctest.h>

namespace holdfast::client {

TEST_CASE("validity: the ttl for a validity is the shortest that is long enough") {
  for (int64_t validity = 1; validity < 5000; ++validity) {
    const DurationMs ttl = ttl_for_validity({validity});
    CHECK(end_of_validity({0}, ttl).count >= validity);
    CHECK(end_of_validity({0}, {ttl.count - 1}).count < validity);
  }
  const DurationMs day{86400000};
  CHECK(end_of_validity({0}, ttl_for_validity(day)).count == day.count);
}

}  // namespace holdfast::client
