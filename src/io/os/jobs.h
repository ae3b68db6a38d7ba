// Runs slow work, such as disk operations, on a thread of libuv's pool, and its continuation on the loop.
#pragma once

#include <uv.h>

#include <functional>
#include <utility>

namespace holdfast {

struct Job {
  uv_work_t request;
  std::function<void()> work;
  std::function<void()> done;
};

// Runs `work` on a pool thread, then `done` on the loop's thread. The loop does not end before that.
inline void run_job(uv_loop_t* loop, std::function<void()> work, std::function<void()> done) {
  auto* job = new Job{{}, std::move(work), std::move(done)};
  job->request.data = job;
  uv_queue_work(
      loop, &job->request, [](uv_work_t* request) { static_cast<Job*>(request->data)->work(); },
      [](uv_work_t* request, int) {
        auto* finished = static_cast<Job*>(request->data);
        finished->done();
        delete finished;
      });
}

}  // namespace holdfast
