// A lock by hand with node-redis: SET NX PX, and scripts that compare. Arguments: the ports of two proxies.
"use strict";
const readline = require("readline");
const redis = require("redis");

const RELEASE =
  "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end " +
  "return redis.call('del', KEYS[1])";
const EXTEND =
  "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end " +
  "return redis.call('pexpire', KEYS[1], ARGV[2])";

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function connected(port) {
  const client = redis.createClient({ socket: { port: Number(port), host: "127.0.0.1" } });
  client.on("error", () => {});
  await client.connect();
  return client;
}

function say(what, value) {
  console.log(what, Boolean(value));
}

async function test() {
  console.log("ready");
  await lines.next();
}

function acquire(client, value) {
  return client.set("job", value, { NX: true, PX: 30000 });
}

function run(client, script, ...args) {
  return client.eval(script, { keys: ["job"], arguments: args });
}

async function main() {
  const [one, two] = [await connected(process.argv[2]), await connected(process.argv[3])];
  say("held", await acquire(one, "one"));
  say("other", await acquire(two, "one"));
  await test();
  say("extended", await run(one, EXTEND, "one", "40000"));
  say("other", await acquire(two, "two"));
  say("released", await run(one, RELEASE, "one"));
  await test();
  say("other", await acquire(two, "two"));
  say("released", await run(two, RELEASE, "two"));
  process.exit(0);
}

main();
