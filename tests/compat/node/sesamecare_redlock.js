// @sesamecare-oss/redlock over ioredis 6: as redlock 5. Its scripts also select a database.
"use strict";
const Redis = require("ioredis");
const { Redlock } = require("@sesamecare-oss/redlock");
const { lockSuite } = require("./lock_suite");
const { ERRORS_OF_5, majority, partyOf5, selfExtending, severalResources } = require("./redlock_suite");
const { server, step, run } = require("./steps");

async function otherDatabase() {
  const client = new Redis(server);
  const redlock = new Redlock([client], { db: 5, retryCount: 0 });
  await step("a lock in another database leaves the client in its own", [0, 1, 0, 0], async () => {
    const lock = await redlock.acquire(["d"], 20000);
    const here = await client.exists("d");
    const there = await client.multi().select(5).exists("d").select(0).exec();
    await lock.release();
    const after = await client.multi().select(5).exists("d").select(0).exec();
    return [here, there[1][1], after[1][1], await client.exists("d")];
  });
  await redlock.quit();
}

run(async () => {
  const makeParty = (clients) => partyOf5(Redlock, clients);
  const connect = async () => makeParty([new Redis(server)]);
  await lockSuite({
    connect,
    key: (resource) => resource,
    value: (lock) => lock.value,
    errors: ERRORS_OF_5,
  });
  const party = await connect();
  await severalResources(party, ERRORS_OF_5);
  await selfExtending(party);
  await party.close();
  await majority(makeParty, Redis);
  await otherDatabase();
});
