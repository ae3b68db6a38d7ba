// Helpers of all Node cases: steps that print and check their outcome, time limits, waits for events.
"use strict";
const assert = require("assert");
const util = require("util");

const LIMIT_MS = 20000;
const server = { host: process.env.HOST, port: Number(process.env.PORT) };
const onHoldfast = process.env.HOLDFAST === "1";
let label = "";

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// Returns errors, maps and objects without a prototype in one form, independent of the client.
function plain(value) {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (Buffer.isBuffer(value)) return { bytes: value.toString("latin1") };
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return { map: [...value].map(plain) };
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

async function inTime(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not done after ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function told(prefix, name, wanted, act) {
  const got = plain(await inTime(act(), name));
  const shown = util.inspect(got, { depth: null, breakLength: Infinity, compact: true });
  console.log(`${prefix}${name}: ${shown}`);
  assert.deepStrictEqual(got, plain(wanted), `${name}: the outcome is not the promised one`);
}

// Sets the prefix of the following steps' names, for steps that run more than once.
function labelled(text) {
  label = text;
}

// Runs a step, prints its outcome and compares it with the expected one.
function step(name, wanted, act) {
  return told(label, name, wanted, act);
}

// A step that only Holdfast supports; does nothing on Redis.
async function native(name, wanted, act) {
  if (onHoldfast) await told("native: ", name, wanted, act);
}

// The error of a promise that must fail.
async function refusal(promise) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`it should have failed, but returned ${util.inspect(value)}`);
}

// Polls until the answer is true.
async function until(what, ask) {
  const deadline = Date.now() + LIMIT_MS;
  while (!(await ask())) {
    if (Date.now() > deadline) throw new Error(`did not happen in time: ${what}`);
    await pause(2);
  }
}

// A process with an open connection does not end by itself afterwards, and fails by its time limit.
function run(main) {
  main().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = { server, labelled, step, native, refusal, until, pause, run };
