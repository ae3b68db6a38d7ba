// simple-redis-mutex over redis 6: SET NX and a fencing token, release by a script that publishes.
"use strict";
const { createClient } = require("redis");
const { lock, tryLock } = require("simple-redis-mutex");
const { NAMES, lockSuite } = require("./lock_suite");
const { server, step, run } = require("./steps");

async function connect() {
  const client = createClient({ socket: server });
  await client.connect();
  return {
    tryLock: async (resource, ttl) => {
      const [taken, release] = await tryLock(client, resource, { timeout: ttl });
      return taken ? release : null;
    },
    lock: (resource, ttl) => lock(client, resource, { timeout: ttl, pollingInterval: 20 }),
    // It extends by the timeout of the acquisition.
    extend: async (release) => {
      await release.refreshTimeout();
      return release;
    },
    unlock: (release) => release(),
    close: () => client.close(),
    client,
  };
}

async function ownSteps() {
  const { client, close } = await connect();
  const waiter = (options) => lock(client, "own", { pollingInterval: 60000, ...options });
  await step("fencing tokens grow", [1, 1, -1], async () => {
    const first = await waiter({});
    await first();
    const second = await waiter({});
    const [, refused] = await tryLock(client, "own");
    await second();
    const third = await waiter({});
    await third();
    return [
      second.fencingToken - first.fencingToken,
      third.fencingToken - second.fencingToken,
      refused.fencingToken,
    ];
  });
  await step("published releases wake 20 waiters one after another", [20, 1], async () => {
    let inside = 0;
    let most = 0;
    const release = await waiter({});
    const waiting = Array.from({ length: 20 }, async () => {
      const mine = await waiter({});
      most = Math.max(most, ++inside);
      await client.ping();
      inside--;
      await mine();
    });
    await client.ping();
    await release();
    return [(await Promise.all(waiting)).length, most];
  });
  await step(
    "fails after the time given",
    ['Error: Lock "own" could not be acquired after 50 millis', 1],
    async () => {
      const release = await waiter({});
      let told = 0;
      const error = await waiter({ failAfter: 50, onFail: () => told++ }).catch((failure) => failure);
      await release();
      return [error, told];
    },
  );
  await close();
}

run(async () => {
  await lockSuite({
    connect,
    key: (resource) => `@simple-redis-mutex:lock-${resource}`,
    // It publishes the name as a JSON string without quoting it.
    names: NAMES.filter((name) => !name.includes('"')),
    errors: { releaseAgain: "done", releaseLost: "done", extendLost: "done" },
  });
  await ownSteps();
});
