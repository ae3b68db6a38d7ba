// redis-lock over node-redis 4, which it needs: a function that waits for the lock and returns its
// release.
"use strict";
const redis = require("redis4");
const redisLock = require("redis-lock");
const { step, pause, server, run } = require("./steps");

const CROWD = 20;

run(async () => {
  const client = await redis.createClient({ socket: server }).connect();
  const lock = redisLock(client, 5);
  await step("acquire and release", [1, true, 1, 0], async () => {
    const release = await lock("job", 20000);
    const held = await client.exists("lock.job");
    const left = await client.pTTL("lock.job");
    return [held, left > 10000 && left <= 20000, await release(), await client.exists("lock.job")];
  });
  await step("a waiter gets it after the release", [false, true], async () => {
    const release = await lock("job", 20000);
    let got = false;
    const waiting = lock("job", 20000).then((next) => {
      got = true;
      return next();
    });
    await client.ping();
    const early = got;
    await release();
    await waiting;
    return [early, got];
  });
  await step("expiry: the late release does nothing", [undefined, 1], async () => {
    const late = await lock("short", 30);
    const release = await lock("short", 20000); // waits for the end of the first
    await pause(5); // the library adds a millisecond to its own deadline
    const got = await late();
    const held = await client.exists("lock.short");
    await release();
    return [got, held];
  });
  await step(`${CROWD} waiters, one at a time`, { most: 1, entered: CROWD }, async () => {
    let inside = 0;
    let most = 0;
    let entered = 0;
    const enter = async () => {
      const release = await lock("crowd", 20000);
      entered++;
      most = Math.max(most, ++inside);
      await client.ping();
      inside--;
      await release();
    };
    await Promise.all(Array.from({ length: CROWD }, enter));
    return { most, entered };
  });
  await client.quit();
});
