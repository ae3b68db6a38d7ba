// redlock 5 beta over ioredis 5: acquire, extend, release, several resources, a majority, using.
"use strict";
const Redis = require("ioredis5");
const Redlock = require("redlock5").default;
const { lockSuite } = require("./lock_suite");
const { ERRORS_OF_5, majority, partyOf5, selfExtending, severalResources } = require("./redlock_suite");
const { server, run } = require("./steps");

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
});
