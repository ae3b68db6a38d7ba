// redis-semaphore's RedlockMutex over ioredis 5: the steps of all locks on one server, then on three.
"use strict";
const Redis = require("ioredis5");
const { RedlockMutex } = require("redis-semaphore");
const { lockSuite } = require("./lock_suite");
const { majority } = require("./redlock_suite");
const { party, refreshes } = require("./redis_semaphore");
const { server, run } = require("./steps");

const LOST = (resource) => `Error: Acquire redlock-mutex mutex:${resource} timeout`;

run(async () => {
  const partyOf = (clients) =>
    party(
      (resource, options) => new RedlockMutex(clients, resource, options),
      () => Promise.all(clients.map((client) => client.quit())),
    );
  const key = (resource) => `mutex:${resource}`;
  const errors = { releaseAgain: "done", releaseLost: "done", extendLost: LOST("lost") };
  await lockSuite({
    connect: async () => partyOf([new Redis(server)]),
    key,
    value: (mutex) => mutex.identifier,
    errors,
  });
  await majority(partyOf, Redis, key("q"));
  const client = new Redis(server);
  await refreshes(
    (resource, options) => new RedlockMutex([client], resource, options),
    client,
    key("auto"),
  );
  await client.quit();
});
