// Loop iterations as in io/net/server.cc.
#include "store_rig.h"

#include "io/config/options.h"

namespace holdfast {

Process::Process(CrashFiles& disk, const Words& arguments) : disk_(disk) {
  uv_loop_init(&loop_);
  std::vector<const char*> argv{"holdfast-server", "--dir", "folder"};
  for (const std::string& word : arguments) argv.push_back(word.c_str());
  Result<Options> options = read_options(static_cast<int>(argv.size()), argv.data());
  REQUIRE(options);
  options_ = *options;
  auto opened = Store::open(options_, std::make_unique<BorrowedFiles>(disk, dead_), read_rig_clock);
  if (!opened) {
    failure_ = opened.error();
    return;
  }
  store_ = std::move(*opened);
  Config config = engine_config(options_);
  config.hash_seed = 7;
  config.token_floor = store_->past().token_floor();
  config.tokens_ahead = store_->past().tokens_ahead();
  config.boot_id = store_->clock().boot_id;
  config.first_ahead_ms = store_->clock().ahead_ms;
  config.random = [](std::span<uint8_t> bytes) { std::ranges::fill(bytes, uint8_t{7}); };
  config.storage = store_->storage_hooks();
  // Scripts are slow.
  config.clock_us = store_->script_clock([us = int64_t{0}]() mutable { return us += 1000; });
  engine_ = std::make_unique<Engine>(std::move(config));
  Store::Hooks hooks;
  hooks.release_held = [this] { release(held_.take_kept(*store_, rig_now())); };
  hooks.end_iteration = [this] { iteration_wanted_ = true; };
  hooks.fail = [this](const std::string& why) { failure_ = why; };
  hooks.loaded = [this] { loaded_ = true; };
  store_->start(*engine_, &loop_, std::move(hooks));
  while (!loaded_ && failure_.empty()) uv_run(&loop_, UV_RUN_NOWAIT);
  if (loaded_) settle();
}

Process::~Process() {
  if (store_ != nullptr && !ended_) kill();
  uv_run(&loop_, UV_RUN_DEFAULT);
  CHECK(uv_loop_close(&loop_) == 0);
}

size_t Process::handle(ConnId conn, const Words& words, bool closes) {
  engine_->tick(rig_now(), effects_);
  const std::vector<std::string_view> argv(words.begin(), words.end());
  engine_->apply(conn, argv, rig_now(), effects_);
  Buffer& out = engine_->output(conn);
  replies_.push_back({conn, std::string(out.view()), false, closes});
  out.consume(out.size());
  return replies_.size() - 1;
}

size_t Process::apply(ConnId conn, const Words& words, bool closes) {
  const size_t number = handle(conn, words, closes);
  end_iteration();
  if (closes) engine_->drop(conn, rig_now(), effects_);
  return number;
}

std::vector<size_t> Process::send_together(const std::vector<Words>& requests) {
  std::vector<size_t> numbers;
  for (const Words& words : requests)
    numbers.push_back(handle(engine_->open("127.0.0.1:1", "127.0.0.1:2", rig_now()), words, false));
  end_iteration();
  return numbers;
}

size_t Process::send(const Words& words) {
  return apply(engine_->open("127.0.0.1:1", "127.0.0.1:2", rig_now()), words, true);
}

std::string Process::reply(size_t number) const {
  return replies_[number].sent ? replies_[number].text : "held";
}

std::string Process::ask(const Words& words) {
  const size_t number = send(words);
  settle();
  return reply(number);
}

std::string Process::ask_in_session(const Words& words) {
  const size_t number = apply(engine_->open("127.0.0.1:1", "127.0.0.1:2", rig_now()), words, false);
  settle();
  return reply(number);
}

void Process::release(const std::vector<HeldReplies::Reply>& replies) {
  for (const HeldReplies::Reply& held : replies) {
    for (Sent& r : replies_) r.sent = r.sent || r.conn == held.id;
  }
}

void Process::run_iteration() {
  engine_->tick(rig_now(), effects_);
  end_iteration();
}

// See EffectFlush::handle(). Each connection has one reply, so no reply waits for another.
void Process::end_iteration() {
  store_->commit();
  const bool all_may = store_->may_reply(rig_now());
  release(all_may ? held_.take_all() : held_.take_kept(*store_, rig_now()));
  for (size_t i = fresh_from_; i < replies_.size(); ++i) {
    replies_[i].sent = all_may || store_->may_reply_to_others();
    if (!replies_[i].sent) held_.add(store_->promise(rig_now()), replies_[i].conn, 1, 0);
  }
  fresh_from_ = replies_.size();
  effects_.clear();
  store_->settle(rig_now());
}

void Process::settle() {
  constexpr int kMost = 2000;
  int rounds = 0;
  while (running_jobs() > 0 || iteration_wanted_) {
    REQUIRE_MESSAGE(++rounds < kMost, "the loop never comes to rest");
    if (std::exchange(iteration_wanted_, false)) run_iteration();
    uv_run(&loop_, running_jobs() > 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
  }
}

void Process::finish_job() {
  const unsigned before = running_jobs();
  REQUIRE(before > 0);
  while (running_jobs() >= before) uv_run(&loop_, UV_RUN_ONCE);
}

void Process::finish_jobs() {
  while (running_jobs() > 0) finish_job();
}

std::string Process::fact(const std::string& name) const {
  for (const auto& [key, value] : store_->storage_hooks().facts()) {
    if (key == name) return value;
  }
  return "";
}

void Process::run_until(const std::string& name, const std::string& value) {
  constexpr int kMost = 10000;
  for (int rounds = 0; fact(name) != value; ++rounds) {
    REQUIRE_MESSAGE(rounds < kMost, "the snapshot never ends");
    uv_run(&loop_, running_jobs() > 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
  }
}

void Process::run_save() { run_until("rdb_bgsave_in_progress", "0"); }

void Process::finish_save() {
  run_save();
  settle();
}

// A snapshot that is wanted and cannot begin yet does not hold up the seconds.
void Process::rest() {
  run_until("rdb_current_bgsave_time_sec", "-1");
  settle();
}

void Process::idle(int seconds) {
  for (int i = 0; i < seconds; ++i) {
    set_rig_clock(rig_now().mono.count - 1'000'000 + 1000);
    store_->sync_if_due();
    rest();
    store_->every_second();
    rest();
    run_iteration();
    rest();
  }
}

bool Process::stop() {
  run_iteration();
  const bool kept = static_cast<bool>(store_->stop());
  release(store_->all_kept() ? held_.take_all() : held_.take_kept(*store_, rig_now()));
  end();
  return kept;
}

void Process::kill() {
  *dead_ = true;
  disk_.kill();
  static_cast<void>(store_->stop());
  end();
}

void Process::end() {
  ended_ = true;
  uv_run(&loop_, UV_RUN_DEFAULT);
}

std::string token_ahead(int64_t minutes) {
  constexpr int64_t kMinuteUs = 60'000'000;
  return std::to_string(rig_now().wall_us + minutes * kMinuteUs);
}

size_t send_ahead(Process& server, int64_t minutes) {
  const std::string key = "ahead" + std::to_string(minutes);
  return server.send({"LOCK", key, "a", "600000", "TOKEN", token_ahead(minutes)});
}

void check_wait_ends_after(int seconds, Process& server) {
  const Process::Words lock{"LOCK", "free", "bob", "600000"};
  server.idle(seconds - 1);
  CHECK(is_recovering(server.ask(lock)));
  server.idle(1);
  CHECK(is_granted(server.ask(lock)));
}

void reboot(CrashFiles& disk, uint64_t seed) {
  disk.crash(seed);
  Meta meta = meta_of(disk);
  if (!meta.boot_id.empty()) meta.boot_id = "another";
  meta.clock_boot_id = "another";
  disk.bytes("meta") = format_meta(meta);
}

}  // namespace holdfast
