// From the options of an acquisition to the settings of its driver.
#include "client/api/lock_driver.h"

#include <algorithm>
#include <utility>

#include "client/api/attempt_lock.h"
#include "client/api/client_core.h"
#include "client/api/ticket_lock.h"

namespace holdfast {

namespace {

// The reason of a link for a missing reply is more exact than that of the state machine, so it comes first.
constexpr DurationMs kLinkFirst{100};

// A shared hold excludes only writers, which need the write quorum. The other holds exclude readers, too.
size_t breach_of(const client::ClientConfig& settings, Mode mode) {
  return mode == Mode::kSharedLock ? settings.write_quorum
                                   : std::min(settings.write_quorum, settings.read_quorum);
}

size_t most_attempts(const client::ClientConfig& settings, const LockOptions& options) {
  return options.max_attempts > 0 ? options.max_attempts : settings.max_attempts;
}

// Redis has no queue: a wait there follows the events of the key. With a limit of attempts or a backoff it
// consists of attempts instead.
client::RedlockConfig attempts_of(const client::ClientConfig& settings, const LockRequest& request) {
  const LockOptions& options = request.options;
  client::RedlockConfig config;
  config.servers = request.servers.size();
  config.quorum = quorum_of(settings, options.mode);
  config.breach = breach_of(settings, options.mode);
  config.ttl = {options.ttl.count()};
  config.server_timeout = {settings.server_timeout.count + kLinkFirst.count};
  config.min_wait = settings.min_wait;
  config.max_wait = settings.max_wait;
  config.max_attempts = most_attempts(settings, options);
  const std::optional<RetryBackoff>& backoff = options.backoff ? options.backoff : settings.backoff;
  if (backoff) config.backoff = {{backoff->first.count()}, backoff->factor, {backoff->longest.count()}};
  const bool redis = std::ranges::any_of(settings.servers, &client::Address::redis);
  config.queues = !redis || (config.max_attempts == 0 && !backoff);
  if (request.wait.waits) config.wait = DurationMs{request.wait.at_most.value_or(milliseconds(0)).count()};
  return config;
}

std::vector<std::string> words_of(const LockOptions& options) {
  if (options.mode == Mode::kSharedLock) return {"SHARED"};
  if (options.mode == Mode::kCountedLock) return {"LIMIT", std::to_string(options.limit)};
  return {};
}

client::LockMode mode_of(Mode mode) {
  if (mode == Mode::kSharedLock) return client::LockMode::kShared;
  return mode == Mode::kCountedLock ? client::LockMode::kCounted : client::LockMode::kExclusive;
}

client::TicketConfig tickets_of(const client::ClientConfig& settings, const LockRequest& request) {
  const LockOptions& options = request.options;
  client::TicketConfig config;
  config.servers = request.servers.size();
  config.quorum = quorum_of(settings, options.mode);
  config.breach = breach_of(settings, options.mode);
  config.terms.key = request.key;
  config.terms.mode = mode_of(options.mode);
  config.terms.limit = options.limit;
  config.terms.note = options.note;
  config.ttl = {options.ttl.count()};
  config.server_timeout = client::us_of(settings.server_timeout);
  if (!request.wait.waits) {
    config.limit = client::DurationUs{0};
  } else if (request.wait.at_most) {
    config.limit = client::us_of(DurationMs{request.wait.at_most->count()});
  }
  return config;
}

}  // namespace

std::shared_ptr<LockDriver> make_ticket_lock(ClientCore& client, LockUser& user,
                                             const LockRequest& request) {
  TicketLock::Settings settings;
  settings.config = tickets_of(client.config(), request);
  for (const size_t server : request.servers) settings.channels.push_back(client.channel(server));
  const LockOptions& options = request.options;
  settings.confirms_first = !options.renew || options.warn_before.count() > 0;
  if (settings.confirms_first) settings.config.times.confirm = {0};
  settings.max_attempts = most_attempts(client.config(), request.options);
  return std::make_shared<TicketLock>(client.loop(), client.slots(), user, std::move(settings));
}

std::shared_ptr<LockDriver> make_attempt_lock(ClientCore& client, LockUser& user,
                                              const LockRequest& request) {
  return std::make_shared<AttemptLock>(client, user, attempts_of(client.config(), request), request.key,
                                       words_of(request.options), request.options.note, request.servers);
}

}  // namespace holdfast
