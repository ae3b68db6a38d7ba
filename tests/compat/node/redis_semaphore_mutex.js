// redis-semaphore's Mutex over ioredis 6.
"use strict";
const Redis = require("ioredis");
const { Mutex } = require("redis-semaphore");
const { lockSuite } = require("./lock_suite");
const { party, refreshes } = require("./redis_semaphore");
const { server, run } = require("./steps");

const LOST = (resource) => `Error: Acquire mutex mutex:${resource} timeout`;

run(async () => {
  const connect = async () => {
    const client = new Redis(server);
    return party(
      (resource, options) => new Mutex(client, resource, options),
      () => client.quit(),
    );
  };
  const key = (resource) => `mutex:${resource}`;
  const errors = { releaseAgain: "done", releaseLost: "done", extendLost: LOST("lost") };
  await lockSuite({ connect, key, value: (mutex) => mutex.identifier, errors });
  const client = new Redis(server);
  await refreshes((resource, options) => new Mutex(client, resource, options), client, key("auto"));
  await client.quit();
});
