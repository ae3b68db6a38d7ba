// The phases of a HoldCore, and what it keeps in each of them. Times in us are those of Loop::now_us().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "client/api/key_watch.h"
#include "client/api/lock_driver.h"
#include "client/api/wait_inquiry.h"
#include "core/base/types.h"
#include "holdfast/hold.h"
#include "holdfast/result.h"
#include "holdfast/stats.h"

namespace holdfast::hold {

using Done = std::function<void(Result<Hold>)>;
using Answer = std::shared_ptr<std::promise<Status>>;

struct Acquiring {
  Done done;
  int64_t asked_us = 0;
  const char* cancelled = nullptr;            // why it was cancelled
  bool by_ticket = false;                     // the kind of the driver
  LockDriver::State seen{};                   // the driver's last state
  bool waited = false;                        // it did not end with the first attempt
  size_t counted_attempts = 0;                // attempts that were counted
  std::shared_ptr<WaitInquiry> inquiry = {};  // of a wait, for LockOptions::on_waiting
};

struct Renewing {
  DurationMs ttl{0};
  bool repairs = true;
  int64_t begun_us = 0;
  Answer answer;  // of extend(); may be null
};

struct Holding {
  int64_t granted_us = 0;
  DurationMs ttl{0};   // of the next renewal
  TimeMs valid_until;  // as the driver has said
  TimeMs renew_at = kNever;
  TimeMs warn_at = kNever;
  TimeMs lost_at = kNever;
  bool warned = false;
  bool failing = false;                 // on_renewal_failed was called, on_renewal_restored was not
  std::optional<Outcome> renewed = {};  // the outcome of the last renewal
  bool verify_later = false;            // something happened during the present renewal
  std::optional<Renewing> renewing = {};
  std::vector<std::pair<DurationMs, Answer>> extends = {};  // calls of extend() that are not sent yet
  std::unique_ptr<KeyWatch> watch = {};
};

struct Ending {
  // A release that is not counted yet.
  struct Release {
    int64_t granted_us = 0;
    LossReason if_lost = LossReason::kGone;
  };
  std::optional<Release> release = {};
  bool gone = false;                  // the hold was lost or left: unlock() has nothing to release
  TimeMs free_at = kNever;            // when to release the lost lock
  std::vector<Answer> releases = {};  // of unlock()
};

struct Over {};

using Phase = std::variant<Acquiring, Holding, Ending, Over>;

}  // namespace holdfast::hold
