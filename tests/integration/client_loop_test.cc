// The client's loop and its timers.
#include <doctest/doctest.h>

#include <csignal>
#include <memory>
#include <vector>

#include "integration/transport_rig.h"

namespace holdfast::integration {
namespace {

TEST_CASE("transport: posted functions, also those posted by others, run in order before the loop ends") {
  std::vector<int> order;
  {
    Loop loop;
    for (int i = 0; i < 100; ++i) loop.post([&order, i] { order.push_back(i); });
    loop.post([&] { loop.post([&] { order.push_back(loop.on_thread() ? 100 : -1); }); });
    CHECK(!loop.on_thread());
  }
  REQUIRE(order.size() == 101);
  for (int i = 0; i <= 100; ++i) CHECK(order[static_cast<size_t>(i)] == i);
}

TEST_CASE("transport: a timer fires once, at the time of the last set()") {
  Inbox<int64_t> inbox;
  Loop loop;
  std::unique_ptr<LoopTimer> timer;
  TimeMs at{};
  run_on(loop, [&] {
    timer = std::make_unique<LoopTimer>(loop, [&] { inbox.put(Loop::now().count); });
    timer->set(kNever);
    timer->set(Loop::now() + DurationMs{1});
    at = Loop::now() + DurationMs{1200};  // longer than one sleep
    timer->set(at);
  });
  CHECK(inbox.take() >= at.count);
  CHECK(inbox.empty());
  run_on(loop, [&] { timer.reset(); });
}

TEST_CASE("transport: a timer may destroy itself, and a destroyed timer does not fire") {
  Inbox<int> inbox;
  Loop loop;
  std::unique_ptr<LoopTimer> timer;
  run_on(loop, [&] {
    LoopTimer never(loop, [&] { inbox.put(0); });
    never.set(Loop::now());
    timer = std::make_unique<LoopTimer>(loop, [&] {
      timer.reset();
      inbox.put(1);
    });
    timer->set(Loop::now());
  });
  CHECK(inbox.take() == 1);
}

TEST_CASE(
    "transport: the loop's thread blocks signals, and does not change those of the program's threads") {
  sigset_t before{};
  sigset_t after{};
  sigset_t inside{};
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  Loop loop;
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  run_on(loop, [&] { pthread_sigmask(SIG_BLOCK, nullptr, &inside); });
  for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGCHLD, SIGALRM}) {
    CHECK(sigismember(&inside, signal) == 1);
    CHECK(sigismember(&after, signal) == sigismember(&before, signal));
  }
  CHECK(sigismember(&inside, SIGSEGV) == 0);
}

}  // namespace
}  // namespace holdfast::integration
