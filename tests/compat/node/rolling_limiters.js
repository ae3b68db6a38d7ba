// Two limiters whose window is a sorted set, filled by MULTI: ratelimiter and rolling-rate-limiter. The
// argument selects the library. Both take the time from the process, so clock.js moves the window.
"use strict";
const { advance } = require("./clock");
const { labelled, step, server, run } = require("./steps");

const WINDOW_MS = 60000;
const MAX = 3;
// The sizes of the window after 5 requests in it, and after 3 more; ratelimiter keeps only the newest MAX.
const SIZES = { ratelimiter: [3, 3], "rolling-rate-limiter": [5, 4] };

// Puts microseconds of the moved clock in place of a module that reads the machine's.
function replaceClock(name) {
  const now = () => {
    last = Math.max(last + 1, Date.now() * 1000);
    return last;
  };
  let last = 0;
  require.cache[require.resolve(name)] = { exports: { now }, loaded: true };
}

// Each returns a function: an id to the number of requests that remain, or "no".
const libraries = {
  ratelimiter(client) {
    replaceClock("ratelimiter/microtime");
    const Limiter = require("ratelimiter");
    return async (id) => {
      const limiter = new Limiter({ id, db: client, max: MAX, duration: WINDOW_MS });
      const { remaining } = await new Promise((resolve, reject) => {
        limiter.get((error, limit) => (error ? reject(error) : resolve(limit)));
      });
      return remaining > 0 ? remaining - 1 : "no";
    };
  },
  "rolling-rate-limiter"(client) {
    replaceClock("microtime");
    const { RedisRateLimiter } = require("rolling-rate-limiter");
    const limiter = new RedisRateLimiter({
      client,
      namespace: "limit:",
      interval: WINDOW_MS,
      maxInInterval: MAX,
    });
    return async (id) => {
      const { blocked, actionsRemaining } = await limiter.limitWithInfo(id);
      return blocked ? "no" : actionsRemaining;
    };
  },
};

async function uses(limit, id, count) {
  const got = [];
  for (let i = 0; i < count; i++) got.push(await limit(id));
  return got;
}

async function windows(limit, eye, sizes) {
  await step("requests up to the limit", [[2, 1, 0, "no"], [2]], async () => [
    await uses(limit, "a", 4),
    await uses(limit, "b", 1),
  ]);
  await step("the window is a sorted set with a TTL", ["zset", true], async () => {
    const left = await eye.pttl("limit:a");
    return [await eye.type("limit:a"), left > WINDOW_MS / 2 && left <= WINDOW_MS];
  });
  await step("just before the window's end", ["no"], async () => {
    advance(WINDOW_MS - 10000);
    return uses(limit, "a", 1);
  });
  await step("after it the old requests are gone, the rejected too", [...sizes, [1, 0, "no"]], async () => {
    advance(10001);
    const before = await eye.zcard("limit:a");
    const got = await uses(limit, "a", 3);
    return [before, await eye.zcard("limit:a"), got];
  });
  await step("a key of another type: no request passes, and it stays", [true, "string"], async () => {
    await eye.set("limit:text", "v");
    const passed = await limit("text").catch(() => "no");
    return [passed === "no", await eye.type("limit:text")];
  });
}

async function crowd(limit) {
  await step("60 requests at once: exactly the limit passes", MAX, async () => {
    const all = await Promise.all(Array.from({ length: 60 }, () => limit("crowd")));
    return all.filter((each) => each !== "no").length;
  });
}

run(async () => {
  const name = process.argv[2];
  labelled(`${name}: `);
  const Redis = require("ioredis5");
  const [client, eye] = [new Redis(server), new Redis(server)];
  const limit = libraries[name](client);
  await windows(limit, eye, SIZES[name]);
  await crowd(limit);
  await client.quit();
  await eye.quit();
});
