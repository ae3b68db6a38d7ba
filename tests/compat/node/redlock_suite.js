// Features of the Redlock libraries beyond one lock on one server: several resources at once, a majority of
// servers, and from version 5 on a routine during which the library extends the lock.
"use strict";
const Redis = require("ioredis5");
const { outcome } = require("./lock_suite");
const { server, step, until } = require("./steps");

async function severalResources(party, errors) {
  const eye = new Redis(server);
  await step("several resources: all", [3, 0], async () => {
    const lock = await party.tryLock(["a", "b", "c"], 20000);
    const held = await eye.exists("a", "b", "c");
    await party.unlock(lock);
    return [held, await eye.exists("a", "b", "c")];
  });
  await step("several resources: or none", [null, 0, 1], async () => {
    const lock = await party.tryLock("b", 20000);
    const refused = await party.tryLock(["a", "b", "c"], 20000);
    const left = [await eye.exists("a", "c"), await eye.exists("b")];
    await party.unlock(lock);
    return [refused, ...left];
  });
  await step(
    "several resources: one lost",
    [errors.extendLost, errors.releaseLost, 0, "other"],
    async () => {
      const lock = await party.tryLock(["a", "b"], 20000);
      await eye.set("b", "other");
      const outcomes = [await outcome(party.extend(lock, 20000)), await outcome(party.unlock(lock))];
      return [...outcomes, await eye.exists("a"), await eye.get("b")];
    },
  );
  await eye.del("b");
  await eye.quit();
}

// Three name spaces replace three servers: the clients put 1:, 2: and 3: before each key.
async function majority(makeParty, ClientClass, key = "q") {
  const eye = new Redis(server);
  const party = makeParty([1, 2, 3].map((n) => new ClientClass({ ...server, keyPrefix: `${n}:` })));
  const held = async () => [
    await eye.exists(`1:${key}`),
    await eye.exists(`2:${key}`),
    await eye.exists(`3:${key}`),
  ];
  await step(
    "three servers: all",
    [
      [1, 1, 1],
      [0, 0, 0],
    ],
    async () => {
      const lock = await party.tryLock("q", 20000);
      await until("all have voted", async () => String(await held()) === "1,1,1");
      const all = await held();
      await party.unlock(lock);
      await until("all have released", async () => String(await held()) === "0,0,0");
      return [all, await held()];
    },
  );
  await step("three servers: one says no", ["other", [0, 1, 0]], async () => {
    await eye.set(`2:${key}`, "other");
    await party.unlock(await party.extend(await party.tryLock("q", 20000), 20000));
    await until("the others have released", async () => String(await held()) === "0,1,0");
    return [await eye.get(`2:${key}`), await held()];
  });
  await step("three servers: two say no", [null, [0, 1, 1]], async () => {
    await eye.set(`3:${key}`, "other");
    const refused = await party.tryLock("q", 20000);
    await until("its own vote is taken back", async () => String(await held()) === "0,1,1");
    return [refused, await held()];
  });
  await party.close();
  await eye.quit();
}

// A party with the interface of version 5.
function partyOf5(Redlock, clients) {
  const once = new Redlock(clients, { retryCount: 0 });
  const patient = new Redlock(clients, { retryCount: 5000, retryDelay: 8, retryJitter: 4 });
  const all = (resource) => [].concat(resource);
  return {
    redlock: once,
    tryLock: (resource, ttl) =>
      once.acquire(all(resource), ttl).catch((error) => {
        if (error.name === "ExecutionError") return null;
        throw error;
      }),
    lock: (resource, ttl) => patient.acquire(all(resource), ttl),
    extend: (lock, ttl) => once.extend(lock, ttl),
    unlock: (lock) => once.release(lock),
    close: () => once.quit(),
  };
}

async function selfExtending(party) {
  const eye = new Redis(server);
  await step("using: extends the lock while the routine runs, then releases", ["result", 0], async () => {
    const result = await party.redlock.using(
      ["u"],
      400,
      { automaticExtensionThreshold: 200 },
      async (signal) => {
        let renewals = 0;
        let before = await eye.pttl("u");
        await until("it is renewed three times", async () => {
          const left = await eye.pttl("u");
          renewals += left > before;
          before = left;
          return renewals === 3;
        });
        return signal.aborted ? "aborted" : "result";
      },
    );
    return [result, await eye.exists("u")];
  });
  await step(
    "using: the routine gets the loss of the lock",
    [true, "ExecutionError", "other"],
    async () => {
      const settings = { automaticExtensionThreshold: 200 };
      let heard;
      await outcome(
        party.redlock.using(["u"], 400, settings, async (signal) => {
          await eye.set("u", "other");
          await until("the signal comes", async () => signal.aborted);
          heard = [signal.aborted, signal.error.name];
        }),
      );
      return [...heard, await eye.get("u")];
    },
  );
  await eye.quit();
}

const NO_QUORUM = "ExecutionError: The operation was unable to achieve a quorum during its retry window.";
const ERRORS_OF_5 = {
  releaseAgain: NO_QUORUM,
  releaseLost: NO_QUORUM,
  extendLost: NO_QUORUM,
};

module.exports = { ERRORS_OF_5, majority, partyOf5, selfExtending, severalResources };
