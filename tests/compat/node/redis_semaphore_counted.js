// redis-semaphore's counting locks over ioredis 6: Semaphore, MultiSemaphore, and both on three servers.
// The library takes the time from Date.now(), so clock.js lets permits expire without a pause.
"use strict";
const Redis = require("ioredis");
const semaphores = require("redis-semaphore");
const { advance } = require("./clock");
const { labelled, step, native, server, run } = require("./steps");

const LIMIT = 3;
const CROWD = 20;
const ONCE = { acquireAttemptsLimit: 1, retryInterval: 0, refreshInterval: 0, lockTimeout: 20000 };

function tryAll(all) {
  return all.reduce(async (got, each) => [...(await got), await each.tryAcquire()], Promise.resolve([]));
}

async function holding(make, eyes) {
  const sizes = async (key) => Promise.all(eyes.map((eye) => eye.zcard(`semaphore:${key}`)));
  const each = (value) => eyes.map(() => value);
  const all = Array.from({ length: LIMIT + 1 }, () => make("s", ONCE));
  await step("acquire up to the limit", [[true, true, true, false], each(LIMIT)], async () => [
    await tryAll(all),
    await sizes("s"),
  ]);
  await step("the key expires with its last permit", each(true), async () => {
    const left = await Promise.all(eyes.map((eye) => eye.pttl("semaphore:s")));
    return left.map((ms) => ms > 10000 && ms <= 20000);
  });
  await step("release gives the permit to the next", [each(LIMIT - 1), true, each(LIMIT)], async () => {
    await all[0].release();
    const after = await sizes("s");
    return [after, await all[LIMIT].tryAcquire(), await sizes("s")];
  });
  await step("release again changes nothing", each(LIMIT), async () => {
    await all[0].release();
    return sizes("s");
  });
  await step("permits expire; a late refresh does not get one back", [true, false, each(1)], async () => {
    advance(20001);
    const next = make("s", ONCE);
    const got = await next.tryAcquire();
    const { identifier } = all[1];
    const late = make("s", { ...ONCE, identifier, acquiredExternally: true });
    return [got, await late.tryAcquire(), await sizes("s")];
  });
  await step("a refresh moves the permit's end", [true, [true, true, false]], async () => {
    const first = make("r", ONCE);
    const got = await first.tryAcquire();
    advance(15000);
    const { identifier } = first;
    await make("r", { ...ONCE, identifier, acquiredExternally: true }).tryAcquire();
    advance(15000);
    return [got, await tryAll([make("r", ONCE), make("r", ONCE), make("r", ONCE)])];
  });
  await Promise.all(eyes.map((eye) => eye.flushall()));
}

async function refreshing(make, eyes) {
  await step("a lost permit is reported by the next refresh", ["LostLockError", false], async () => {
    let lost;
    const heard = new Promise((resolve) => {
      lost = resolve;
    });
    const semaphore = make("auto", { lockTimeout: 1000, refreshInterval: 20, onLockLost: lost });
    await semaphore.acquire();
    await Promise.all(eyes.map((eye) => eye.del("semaphore:auto")));
    return [(await heard).constructor.name, semaphore.isAcquired];
  });
  await step("gives up after its time", "TimeoutError", async () => {
    const holders = Array.from({ length: LIMIT }, () => make("full", ONCE));
    await tryAll(holders);
    const late = make("full", { acquireTimeout: 40, retryInterval: 5, refreshInterval: 0 });
    return late.acquire().catch((error) => error.constructor.name);
  });
  await step("another type of key is an error, and stays", ["string", true], async () => {
    await Promise.all(eyes.map((eye) => eye.set("semaphore:text", "v")));
    const got = await make("text", ONCE).tryAcquire().catch((error) => /WRONGTYPE/.test(error.message));
    // With several servers the library takes the error for a refusal.
    return [await eyes[0].type("semaphore:text"), eyes.length > 1 ? !got : got];
  });
}

async function crowded(make) {
  await step(`${CROWD} clients, at most ${LIMIT} inside`, { most: true, entered: CROWD }, async () => {
    let inside = 0;
    let most = 0;
    let entered = 0;
    const enter = async () => {
      const semaphore = make("crowd", { acquireTimeout: 20000, retryInterval: 3, refreshInterval: 0 });
      await semaphore.acquire();
      entered++;
      most = Math.max(most, ++inside);
      await new Promise(setImmediate);
      inside--;
      await semaphore.release();
    };
    await Promise.all(Array.from({ length: CROWD }, enter));
    return { most: most >= 1 && most <= LIMIT, entered };
  });
}

async function permits(client) {
  const { MultiSemaphore } = semaphores;
  const make = (n) => new MultiSemaphore(client, "m", 5, n, ONCE);
  const three = make(3);
  const two = make(2);
  await step("several permits at once: all or none", [true, false, 3, true, 5], async () => {
    const first = await three.tryAcquire();
    const tooMany = await make(3).tryAcquire();
    const held = await client.zcard("semaphore:m");
    return [first, tooMany, held, await two.tryAcquire(), await client.zcard("semaphore:m")];
  });
  await step("the members are the identifier's permits", true, async () => {
    const members = await client.zrange("semaphore:m", 0, -1);
    const own = [0, 1, 2].map((n) => `${three.identifier}_${n}`);
    return own.every((member) => members.includes(member));
  });
  await step("release of all of them", [2, 0], async () => {
    await three.release();
    const left = await client.zcard("semaphore:m");
    await two.release();
    return [left, await client.exists("semaphore:m")];
  });
  await native("LOCK does not take a semaphore's key", true, async () => {
    await make(1).tryAcquire();
    return client.call("LOCK", "semaphore:m", "me", 1000).catch((e) => /^WRONGTYPE/.test(e.message));
  });
}

run(async () => {
  const client = new Redis(server);
  const three = [1, 2, 3].map((db) => new Redis({ ...server, db }));
  const kinds = {
    Semaphore: [[client], (key, options) => new semaphores.Semaphore(client, key, LIMIT, options)],
    MultiSemaphore: [
      [client],
      (key, options) => new semaphores.MultiSemaphore(client, key, LIMIT, 1, options),
    ],
    RedlockSemaphore: [
      three,
      (key, options) => new semaphores.RedlockSemaphore(three, key, LIMIT, options),
    ],
    RedlockMultiSemaphore: [
      three,
      (key, options) => new semaphores.RedlockMultiSemaphore(three, key, LIMIT, 1, options),
    ],
  };
  for (const [kind, [eyes, make]] of Object.entries(kinds)) {
    labelled(`${kind}: `);
    await holding(make, eyes);
    await refreshing(make, eyes);
    if (eyes.length === 1) await crowded(make); // on several servers equal clients can starve each other
  }
  labelled("");
  await client.flushall();
  await permits(client);
  await Promise.all([client, ...three].map((each) => each.quit()));
});
