// Runs the unchanged test file of redlock 4.2.0. It imports "redis" and "ioredis" and uses the default
// port. It gets redis 3 and ioredis 4, as in redlock's package.json, at the port of the case. Its SADD only
// makes a key of a wrong type. Holdfast has no sets, so that key is a hash on both sides.
"use strict";
const Module = require("module");
const Mocha = require("mocha");
const { server } = require("./steps");

const load = Module._load;

function withoutSets(client) {
  client.sadd = (key, member, done) => client.hset(key, member, "", done);
  return client;
}

function standIn(name, parent) {
  if (name === "redis") {
    const redis = load("redis3", parent);
    return { createClient: (options) => withoutSets(redis.createClient({ ...server, ...options })) };
  }
  const Redis = load("ioredis4", parent);
  return function (options) {
    return withoutSets(new Redis({ ...server, ...options }));
  };
}

Module._load = (name, parent, isMain) =>
  name === "redis" || name === "ioredis" ? standIn(name, parent) : load(name, parent, isMain);

const tests = new Mocha({ reporter: function () {} });
tests.addFile(require.resolve("redlock4/test.js"));
tests
  .run((failures) => process.exit(failures ? 1 : 0))
  .on("pass", (test) => console.log(`${test.fullTitle()}: passed`))
  .on("fail", (test, error) => console.log(`${test.fullTitle()}: failed: ${error.stack}`));
