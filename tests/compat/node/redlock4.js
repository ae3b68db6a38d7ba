// redlock 4: lock, extend, unlock, several resources, a majority, over ioredis 4; and over redis 3.
"use strict";
const Redis = require("ioredis4");
const Redlock = require("redlock4");
const redis3 = require("redis3");
const { lockSuite } = require("./lock_suite");
const { majority, severalResources } = require("./redlock_suite");
const { server, step, run } = require("./steps");

const ERRORS = {
  releaseAgain: 'LockError: Unable to fully release the lock on resource "r".',
  releaseLost: 'LockError: Unable to fully release the lock on resource "lost".',
  extendLost: 'LockError: Exceeded 0 attempts to lock the resource "lost".',
};
const ERRORS_OF_TWO = {
  releaseLost: 'LockError: Unable to fully release the lock on resource "a,b".',
  extendLost: 'LockError: Exceeded 0 attempts to lock the resource "a,b".',
};

function party(clients) {
  const once = new Redlock(clients, { retryCount: 0 });
  const patient = new Redlock(clients, { retryCount: 5000, retryDelay: 8, retryJitter: 4 });
  return {
    tryLock: (resource, ttl) =>
      once.lock(resource, ttl).catch((error) => {
        if (error instanceof Redlock.LockError) return null;
        throw error;
      }),
    lock: (resource, ttl) => patient.lock(resource, ttl),
    extend: (lock, ttl) => once.extend(lock, ttl),
    unlock: (lock) => once.unlock(lock),
    close: () => once.quit(),
  };
}

async function overRedis3() {
  const [alice, bob] = [1, 2].map(() => party([redis3.createClient(server)]));
  await step("over redis 3", [null, "object"], async () => {
    const lock = await alice.extend(await alice.tryLock("r3", 20000), 20000);
    const refused = await bob.tryLock("r3", 20000);
    await alice.unlock(lock);
    const next = await bob.tryLock("r3", 20000);
    await bob.unlock(next);
    return [refused, typeof next];
  });
  await Promise.all([alice.close(), bob.close()]);
}

run(async () => {
  const connect = async () => party([new Redis(server)]);
  await lockSuite({ connect, key: (resource) => resource, value: (lock) => lock.value, errors: ERRORS });
  const one = await connect();
  await severalResources(one, ERRORS_OF_TWO);
  await one.close();
  await majority(party, Redis);
  await overRedis3();
});
