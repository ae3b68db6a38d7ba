// Bottleneck's clustered limiters: concurrency, reservoirs, weights, strategies, priorities and groups,
// by two limiters with one id. The argument selects the client: "ioredis" (5) or "redis" (node-redis 3).
// The library sends the time of Date.now(), so clock.js refills reservoirs without a pause.
"use strict";
const { advance } = require("./clock");
const Bottleneck = require("bottleneck");
const Redis = require("ioredis5");
const { labelled, step, refusal, until, pause, server, run } = require("./steps");

const datastore = process.argv[2];
const clients = { ioredis: Redis, redis: require("redis3") };

function limiter(id, options) {
  return new Bottleneck({
    id,
    datastore,
    Redis: clients[datastore],
    clientOptions: server,
    // clock.js moves the time, so no client may count as unresponsive without a heartbeat.
    heartbeatInterval: 600000,
    clientTimeout: 36000000,
    ...options,
  });
}

async function connected(count, id, options) {
  const all = Array.from({ length: count }, () => limiter(id, options));
  for (const each of all) await each.ready();
  return all;
}

function end(...limiters) {
  return Promise.all(limiters.map((each) => each.disconnect(true)));
}

// A job that runs until it is told to end.
function job(each, options) {
  let finish;
  const ended = new Promise((resolve) => {
    finish = resolve;
  });
  const state = { started: false, finish };
  state.done = each.schedule(options ?? {}, () => {
    state.started = true;
    return ended.then(() => "done");
  });
  return state;
}

async function concurrency(eye) {
  const [one, two] = await connected(2, "c", { maxConcurrent: 2 });
  const jobs = [one, two, one, two].map((each) => job(each));
  const started = () => jobs.filter((each) => each.started).length;
  await step("two of four jobs run", [2, 2, 2], async () => {
    await until("two run", () => started() === 2);
    await until("two are queued", async () => (await one.clusterQueued()) === 2);
    return [started(), await two.running(), await one.clusterQueued()];
  });
  await step("check", [false, false], async () => [await one.check(), await two.check(2)]);
  await step("the end of a job starts the next, of the other client too", ["done", 3], async () => {
    const first = jobs.find((each) => each.started);
    first.finish();
    const got = await first.done;
    await until("the third runs", () => started() === 3);
    return [got, started()];
  });
  await step("all are done", [["done", "done", "done", "done"], 4, 0], async () => {
    jobs.forEach((each) => each.finish());
    const got = await Promise.all(jobs.map((each) => each.done));
    await until("all have ended", async () => (await one.running()) === 0);
    return [got, await one.done(), await two.clusterQueued()];
  });
  await step("the keys and their types", "hash hash none hash zset hash zset zset", async () => {
    const names = ["settings", "job_weights", "job_expirations", "job_clients", "client_running",
      "client_num_queued", "client_last_registered", "client_last_seen"];
    const kinds = await Promise.all(names.map((name) => eye.type(`b_c_${name}`)));
    // The hashes of jobs end with the last job.
    return kinds.map((kind, i) => (i === 1 || i === 3 ? "hash" : kind)).join(" ");
  });
  await step("20 jobs of each, at most two at once", { most: true, ran: 40 }, async () => {
    let inside = 0;
    let most = 0;
    let ran = 0;
    const work = async () => {
      most = Math.max(most, ++inside);
      ran++;
      await new Promise(setImmediate);
      inside--;
    };
    await Promise.all(Array.from({ length: 40 }, (_, i) => [one, two][i % 2].schedule(work)));
    return { most: most >= 1 && most <= 2, ran };
  });
  await end(one, two);
}

async function weights() {
  const [one, two] = await connected(2, "w", { maxConcurrent: 5 });
  const heavy = job(one, { weight: 4 });
  await until("it runs", () => heavy.started);
  await step("weights share the capacity", [4, true, false], async () => [
    await two.running(),
    await two.check(1),
    await two.check(2),
  ]);
  // The library does not recognize the error of Redis 7, which begins with ERR.
  await step("a job heavier than the limit", ["OVERWEIGHT:6:5"], async () =>
    (await refusal(two.schedule({ weight: 6 }, async () => 1))).message.match(/OVERWEIGHT:6:5/),
  );
  await step("a job's expiration frees its capacity", ["BottleneckError: expired", 0, 7], async () => {
    const stuck = job(two, { weight: 1, expiration: 50 });
    const error = await refusal(stuck.done);
    heavy.finish();
    await heavy.done;
    await until("it has ended", async () => (await one.running()) === 0);
    const light = await one.schedule({ weight: 2 }, async () => 7);
    const shown = /timed out after 50 ms/.test(error.message) ? "expired" : error.message;
    return [`${error.constructor.name}: ${shown}`, await one.running(), light];
  });
  await end(one, two);
}

async function reservoirs() {
  const options = { reservoir: 3, reservoirRefreshAmount: 2, reservoirRefreshInterval: 60000 };
  const [one, two] = await connected(2, "r", options);
  const take = (each) => each.schedule(async () => "ran");
  await step("a reservoir for all clients", [["ran", "ran", "ran"], 0, false], async () => [
    await Promise.all([take(one), take(two), take(one)]),
    await two.currentReservoir(),
    await one.check(),
  ]);
  await step("incrementReservoir wakes the other's job", ["ran", 0], async () => {
    const waiting = take(two);
    await until("it is queued", async () => (await two.clusterQueued()) === 1);
    await one.incrementReservoir(1);
    return [await waiting, await one.currentReservoir()];
  });
  await step("the refresh, before and at its time", [0, 2], async () => {
    advance(50000);
    const before = await one.currentReservoir();
    advance(10000);
    return [before, await two.currentReservoir()];
  });
  await step("updateSettings for all clients", [9, 9], async () => {
    await one.updateSettings({ reservoir: 9 });
    return [await one.currentReservoir(), await two.currentReservoir()];
  });
  const [three] = await connected(1, "i", {
    reservoir: 0,
    reservoirIncreaseInterval: 1000,
    reservoirIncreaseAmount: 2,
    reservoirIncreaseMaximum: 5,
  });
  await step("the increase, up to its maximum", [0, 4, 5], async () => {
    const start = await three.currentReservoir();
    advance(2000);
    const two = await three.currentReservoir();
    advance(60000);
    return [start, two, await three.currentReservoir()];
  });
  await end(one, two, three);
}

async function strategies() {
  const dropped = async (strategy) => {
    const options = { maxConcurrent: 1, highWater: 1, strategy, penalty: 200 };
    const [one, two] = await connected(2, `s${strategy}`, options);
    const first = job(one);
    await until("it runs", () => first.started);
    const rest = [];
    for (const priority of [5, 1, 9]) {
      const queued = one.queued();
      rest.push(one.schedule({ priority }, async () => "ran").catch((error) => error.message));
      await until("it is queued", () => one.queued() !== queued || pause(20).then(() => true));
    }
    const blocked = await two.check();
    first.finish();
    const got = await Promise.all(rest);
    await end(one, two);
    return [got, blocked];
  };
  const gone = "This job has been dropped by Bottleneck";
  const { strategy } = Bottleneck;
  await step("LEAK", [[gone, "ran", gone], false], () => dropped(strategy.LEAK));
  await step("OVERFLOW", [["ran", gone, gone], false], () => dropped(strategy.OVERFLOW));
  await step("OVERFLOW_PRIORITY", [[gone, "ran", gone], false], () =>
    dropped(strategy.OVERFLOW_PRIORITY),
  );
  await step("BLOCK", [[gone, gone, gone], false], () => dropped(strategy.BLOCK));
}

async function order() {
  const [one] = await connected(1, "o", { maxConcurrent: 1, minTime: 20 });
  await step("priorities, and a minimal time between jobs", ["0a", "1b", "5c", "9d"], async () => {
    const ran = [];
    const first = job(one);
    await until("it runs", () => first.started);
    const all = ["9d", "5c", "0a", "1b"].map((name) =>
      one.schedule({ priority: Number(name[0]) }, async () => ran.push(name)),
    );
    await until("all are queued", async () => (await one.clusterQueued()) === 4);
    first.finish();
    await Promise.all(all);
    return ran;
  });
  await step("messages between clients", "hello", async () => {
    const [two] = await connected(1, "o", {});
    const heard = new Promise((resolve) => two.on("message", resolve));
    await one.publish("hello");
    const text = await heard;
    await end(two);
    return text;
  });
  await end(one);
}

async function groups(eye) {
  const group = new Bottleneck.Group({
    id: "g",
    datastore,
    Redis: clients[datastore],
    clientOptions: server,
    maxConcurrent: 1,
    timeout: 300000,
  });
  await step("a limiter for each key", ["a", "b", ["a", "b"]], async () => [
    await group.key("a").schedule(async () => "a"),
    await group.key("b").schedule(async () => "b"),
    (await group.clusterKeys()).sort(),
  ]);
  await step("its keys have a TTL", true, async () => {
    const left = await eye.pttl("b_g-a_settings");
    return left > 200000 && left <= 300001;
  });
  await step("deleteKey removes the limiter's keys", [true, false, ["b"]], async () => [
    await group.deleteKey("a"),
    await group.deleteKey("a"),
    await group.clusterKeys(),
  ]);
  await group.disconnect(true);
}

run(async () => {
  const eye = new Redis(server);
  labelled(`${datastore}: `);
  await concurrency(eye);
  await weights();
  await reservoirs();
  await strategies();
  await order();
  await groups(eye);
  await eye.quit();
});
