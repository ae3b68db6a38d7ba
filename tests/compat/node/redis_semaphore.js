// The party for redis-semaphore's Mutex and RedlockMutex, which have the same interface.
"use strict";
const { step, until } = require("./steps");

// make(resource, options) returns a mutex on the party's own connection.
function party(make, close) {
  const options = (ttl, more) => ({ lockTimeout: ttl, refreshInterval: 0, retryInterval: 5, ...more });
  const tryLock = async (resource, ttl) => {
    const mutex = make(resource, options(ttl, { acquireAttemptsLimit: 1, retryInterval: 0 }));
    mutex.resource = resource;
    return (await mutex.tryAcquire()) ? mutex : null;
  };
  const lock = async (resource, ttl) => {
    const mutex = make(resource, options(ttl, { acquireTimeout: 20000 }));
    mutex.resource = resource;
    await mutex.acquire();
    return mutex;
  };
  const extend = async (mutex, ttl) => {
    const { identifier, resource } = mutex;
    const handedOver = make(resource, options(ttl, { identifier, acquiredExternally: true }));
    handedOver.resource = resource;
    await handedOver.acquire();
    return handedOver;
  };
  return { tryLock, lock, extend, unlock: (mutex) => mutex.release(), close };
}

// make as above; eye reads the keys; key is the key of the resource "auto".
async function refreshes(make, eye, key) {
  await step("refreshes by itself until it is released", [true, false, 0], async () => {
    const mutex = make("auto", { lockTimeout: 200, refreshInterval: 50 });
    await mutex.acquire();
    const value = await eye.get(key);
    let renewals = 0;
    let before = await eye.pttl(key);
    await until("it is refreshed five times", async () => {
      const left = await eye.pttl(key);
      renewals += left > before;
      before = left;
      return renewals === 5;
    });
    const kept = mutex.isAcquired && value === (await eye.get(key));
    await mutex.release();
    return [kept, mutex.isAcquired, await eye.exists(key)];
  });
  await step("the next refresh reports the lost lock", [true, false, "other"], async () => {
    let lost;
    const heard = new Promise((resolve) => {
      lost = resolve;
    });
    const mutex = make("auto", { lockTimeout: 200, refreshInterval: 50, onLockLost: lost });
    await mutex.acquire();
    await eye.set(key, "other");
    const error = await heard;
    return [error.message.startsWith("Lost"), mutex.isAcquired, await eye.get(key)];
  });
  await step("gives up after its time", "TimeoutError", async () => {
    const mutex = make("auto", { acquireTimeout: 50, retryInterval: 5 });
    return mutex.acquire().catch((error) => error.constructor.name);
  });
  await eye.del(key);
}

module.exports = { party, refreshes };
