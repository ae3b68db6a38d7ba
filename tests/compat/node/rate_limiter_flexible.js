// rate-limiter-flexible over ioredis 6 and node-redis 5: limiters of one and of several windows, blocks,
// penalties, a burst limiter and a queue. Its windows are the TTLs of counters on the server.
"use strict";
const IORedis = require("ioredis");
const redis = require("redis5");
const {
  RateLimiterRedis,
  RateLimiterUnion,
  BurstyRateLimiter,
  RateLimiterQueue,
} = require("rate-limiter-flexible");
const { labelled, step, until, server, run } = require("./steps");

// A result of the library on one line: the points used, and those that remain.
function shown({ consumedPoints, remainingPoints, isFirstInDuration }) {
  return [consumedPoints, remainingPoints, isFirstInDuration];
}

async function take(limiter, key, points) {
  try {
    return shown(await limiter.consume(key, points));
  } catch (rejected) {
    if (rejected instanceof Error) throw rejected;
    return ["rejected", ...shown(rejected)];
  }
}

async function points(store, eye) {
  const limiter = new RateLimiterRedis({ ...store, points: 3, duration: 60, keyPrefix: "p" });
  await step("consume", [[1, 2, true], [3, 0, false], ["rejected", 4, 0, false]], async () => [
    await take(limiter, "k", 1),
    await take(limiter, "k", 2),
    await take(limiter, "k", 1),
  ]);
  await step("the counter expires with the window", true, async () => {
    const left = await eye.pttl("p:k");
    return left > 40000 && left <= 60000;
  });
  await step("penalty, reward, get, delete", [5, 3, [3, 0, false], true, null], async () => [
    (await limiter.penalty("k", 1)).consumedPoints,
    (await limiter.reward("k", 2)).consumedPoints,
    shown(await limiter.get("k")),
    await limiter.delete("k"),
    await limiter.get("k"),
  ]);
  await step("set, and block", [[7, 0, false], true, "rejected"], async () => {
    await limiter.set("s", 7, 60);
    const set = shown(await limiter.get("s"));
    await limiter.block("b", 60);
    const left = await eye.pttl("p:b");
    return [set, left > 40000 && left <= 60000, (await take(limiter, "b", 1))[0]];
  });
  await step("a window that ends", [[1, 0, true], "rejected", [1, 0, true]], async () => {
    const short = new RateLimiterRedis({ ...store, points: 1, duration: 1, keyPrefix: "short" });
    const first = await take(short, "k", 1);
    const second = (await take(short, "k", 1))[0];
    await eye.pexpire("short:k", 1);
    await until("the window ends", async () => (await eye.exists("short:k")) === 0);
    return [first, second, await take(short, "k", 1)];
  });
  await step("without an end", [-1, 2], async () => {
    const forever = new RateLimiterRedis({ ...store, points: 9, duration: 0, keyPrefix: "ever" });
    await take(forever, "k", 1);
    await take(forever, "k", 1);
    return [await eye.pttl("ever:k"), Number(await eye.get("ever:k"))];
  });
}

async function combined(store) {
  const limiter = (keyPrefix, count, duration = 60) =>
    new RateLimiterRedis({ ...store, points: count, duration, keyPrefix });
  await step("a union of two windows", [true, ["u1"]], async () => {
    const union = new RateLimiterUnion(limiter("u1", 1), limiter("u2", 5, 3600));
    await union.consume("k");
    const rejected = await union.consume("k").catch((each) => each);
    return [!(rejected instanceof Error), Object.keys(rejected)];
  });
  await step("bursts", [true, true, true, false], async () => {
    const bursty = new BurstyRateLimiter(limiter("rate", 1), limiter("burst", 2));
    const got = [];
    for (let i = 0; i < 4; i++) got.push(await bursty.consume("k").then(() => true, () => false));
    return got;
  });
  await step("a queue", [4, 3], async () => {
    const queue = new RateLimiterQueue(limiter("queue", 9), { maxQueueSize: 9 });
    return [await queue.removeTokens(5), await queue.removeTokens(1)];
  });
  await step("100 at once: exactly the limit passes", 20, async () => {
    const many = limiter("many", 20);
    const all = await Promise.all(Array.from({ length: 100 }, () => take(many, "k", 1)));
    return all.filter(([first]) => first !== "rejected").length;
  });
}

run(async () => {
  const eye = new IORedis(server);
  const six = new IORedis(server);
  const five = await redis.createClient({ socket: server }).connect();
  const stores = {
    "ioredis 6": { storeClient: six },
    "node-redis 5": { storeClient: five, useRedisPackage: true },
  };
  for (const [name, store] of Object.entries(stores)) {
    labelled(`${name}: `);
    await eye.flushall();
    await points(store, eye);
    await combined(store);
  }
  await Promise.all([eye.quit(), six.quit(), five.close()]);
});
