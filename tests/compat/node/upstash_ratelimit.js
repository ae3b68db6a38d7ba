// @upstash/ratelimit over @upstash/redis, which speaks HTTP: upstash_door.js passes its commands on. 2.0.8
// is the newest version for stock Redis: the scripts of 2.1 have a flag that only the server of Upstash
// knows. The library sends the time of Date.now(), so clock.js moves the windows.
"use strict";
const { advance } = require("./clock");
const { Ratelimit, MultiRegionRatelimit, IpDenyList } = require("@upstash/ratelimit");
const { Redis } = require("@upstash/redis");
const IORedis = require("ioredis5");
const door = require("./upstash_door");
const { step, server, run } = require("./steps");

const HOUR_MS = 3600000;

function made(redis, prefix, limiter, options) {
  return new Ratelimit({ redis, prefix, limiter, ephemeralCache: false, timeout: 0, ...options });
}

// Moves to the beginning of the next hour, as windows are parts of the time since 1970.
function nextHour() {
  advance(HOUR_MS - (Date.now() % HOUR_MS));
}

async function uses(limiter, count, id = "me", options = undefined) {
  const got = [];
  for (let i = 0; i < count; i++) {
    const { success, remaining } = await limiter.limit(id, options);
    got.push(success ? remaining : "no");
  }
  return got;
}

async function windows(redis, eye) {
  nextHour();
  const fixed = made(redis, "fixed", Ratelimit.fixedWindow(3, "1 h"));
  await step("fixed window", [[2, 1, 0, "no"], [2], 0, true], async () => {
    const first = await uses(fixed, 4);
    const other = await uses(fixed, 1, "you");
    const left = (await fixed.getRemaining("me")).remaining;
    const ttl = await eye.pttl((await eye.keys("fixed:me:*"))[0]);
    return [first, other, Math.max(left, 0), ttl > HOUR_MS - 20000 && ttl <= HOUR_MS];
  });
  await step("the next fixed window", [2], async () => {
    nextHour();
    return uses(fixed, 1);
  });
  const sliding = made(redis, "sliding", Ratelimit.slidingWindow(4, "1 h"));
  await step("sliding window", [[3, 2, 1, 0, "no"], ["no"], [2, 1, 0, "no"]], async () => {
    nextHour();
    const first = await uses(sliding, 5);
    nextHour();
    const start = await uses(sliding, 1);
    advance(HOUR_MS / 2 + 1000);
    return [first, start, await uses(sliding, 4)];
  });
  await step("a rate above 1, and the reset of used tokens", [[1], ["no"], 4], async () => {
    nextHour();
    nextHour();
    const first = await uses(sliding, 1, "rate", { rate: 3 });
    await uses(sliding, 1, "rate");
    const full = await uses(sliding, 1, "rate");
    await sliding.resetUsedTokens("rate");
    return [first, full, (await sliding.getRemaining("rate")).remaining];
  });
}

async function buckets(redis) {
  const bucket = made(redis, "bucket", Ratelimit.tokenBucket(2, "1 h", 5));
  await step("token bucket: before and at its refill", [[4, 3, 2, 1, 0, "no"], ["no"], [1, 0, "no"]],
    async () => {
      const first = await uses(bucket, 6);
      advance(HOUR_MS - 30000);
      const early = await uses(bucket, 1);
      advance(30000);
      return [first, early, await uses(bucket, 3)];
    });
  const dynamic = made(redis, "dynamic", Ratelimit.tokenBucket(2, "1 h", 5), { dynamicLimits: true });
  await step("a dynamic limit", [2, [1, 0, "no"]], async () => {
    await dynamic.setDynamicLimit({ limit: 2 });
    return [(await dynamic.getDynamicLimit()).dynamicLimit, await uses(dynamic, 3)];
  });
  const cached = made(redis, "cached", Ratelimit.cachedFixedWindow(2, "1 h"), {
    ephemeralCache: new Map(),
  });
  await step("cached fixed window", [1, "no", "no"], async () => {
    nextHour();
    return uses(cached, 3);
  });
}

async function denied(redis, eye) {
  const guarded = made(redis, "guarded", Ratelimit.fixedWindow(9, "1 h"), { enableProtection: true });
  await IpDenyList.disableIpDenyList(redis, "guarded");
  await step("deny list, by SMISMEMBER", [[true, false], ["denyList", "10.0.0.9"]], async () => {
    await eye.sadd("guarded:denyList:all", "10.0.0.9", "bad agent");
    const good = await guarded.limit("a", { ip: "10.0.0.1", userAgent: "good" });
    const bad = await guarded.limit("a", { ip: "10.0.0.9", userAgent: "good" });
    return [[good.success, bad.success], [bad.reason, bad.deniedValue]];
  });
  await step("the status of a deny list that is disabled", ["string", "disabled", -1], async () => [
    await eye.type("guarded:ipDenyListStatus"),
    await eye.get("guarded:ipDenyListStatus"),
    await eye.ttl("guarded:ipDenyListStatus"),
  ]);
}

async function counted(redis, eye) {
  const limiter = made(redis, "seen", Ratelimit.fixedWindow(1, "1 h"), { analytics: true });
  await step("analytics, by ZINCRBY", ["zset", ["1", "2"]], async () => {
    nextHour();
    for (let i = 0; i < 3; i++) await (await limiter.limit("me")).pending;
    const [key] = await eye.keys("seen:events:*");
    const scores = (await eye.zrange(key, 0, -1, "WITHSCORES")).filter((_, i) => i % 2);
    return [await eye.type(key), scores];
  });
}

async function regions(all, eye) {
  const limiter = (algorithm, prefix) =>
    new MultiRegionRatelimit({ redis: all, limiter: algorithm, prefix, ephemeralCache: false, timeout: 0 });
  const limited = async (each, count) => {
    const got = [];
    for (let i = 0; i < count; i++) {
      const { success, pending } = await each.limit("me");
      await pending;
      got.push(success);
    }
    return got;
  };
  await step("three regions: fixed window, hashes", [[true, true, false], "hash"], async () => {
    nextHour();
    const got = await limited(limiter(MultiRegionRatelimit.fixedWindow(2, "1 h"), "m1"), 3);
    return [got, await eye.type((await eye.keys("m1:*"))[0])];
  });
  await step("three regions: sliding window", [true, true, false], async () =>
    limited(limiter(MultiRegionRatelimit.slidingWindow(2, "1 h"), "m2"), 3),
  );
}

run(async () => {
  const eye = new IORedis(server);
  const doors = await Promise.all([0, 1, 2].map(door.open));
  const all = doors.map(({ url }) => new Redis({ url, token: "none", responseEncoding: false }));
  await windows(all[0], eye);
  await buckets(all[0]);
  await denied(all[0], eye);
  await counted(all[0], eye);
  await regions(all, eye);
  await Promise.all(doors.map((each) => each.close()));
  await eye.quit();
});
