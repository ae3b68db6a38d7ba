// node-redis, in the version whose package name is the argument, and the differences between versions.
"use strict";
const { server, refusal } = require("./steps");

const redis = require(process.argv[2]);
const isVersion4 = process.argv[2] === "redis4";

async function connected(options) {
  const client = redis.createClient({ ...options, socket: { ...server, reconnectStrategy: 5 } });
  client.on("error", () => {}); // lost connections cause errors, and some steps test that
  await client.connect();
  return client;
}

function ready(client) {
  return new Promise((resolve) => client.once("ready", resolve));
}

function withBuffers(client, act) {
  if (isVersion4) return act(client, [redis.commandOptions({ returnBuffers: true })]);
  return act(client.withTypeMapping({ [redis.RESP_TYPES.BLOB_STRING]: Buffer }), []);
}

async function message(promise) {
  return (await refusal(promise)).message;
}

// Iterators give one element at a time in version 4, and pages from 5 on.
async function gathered(iterator) {
  const found = [];
  for await (const page of iterator) found.push(...[page].flat());
  return found;
}

module.exports = { connected, gathered, isVersion4, message, ready, redis, withBuffers };
