// node-redis, in the version whose package name is the argument: all uses of a client, step by step.
// Versions 5 and 6 run them in both protocols, and then use a cache with the server's invalidations.
"use strict";
const { server, labelled, step, refusal, until, run } = require("./steps");
const { connected, isVersion4, message, ready, redis } = require("./node_redis_client");
const { talk } = require("./node_redis_talk");
const { values } = require("./node_redis_values");
const { WRONG_TYPE } = require("./words");

async function handshake(options) {
  await step("handshake: name, database, open and ready", ["PONG", "a-name", 0, true, true], async () => {
    const client = await connected({ ...options, name: "a-name", database: 3 });
    await client.set("here", 1);
    const told = [await client.ping(), await client.clientGetName()];
    await client.select(0);
    told.push(await client.exists("here"), client.isOpen, client.isReady);
    await client.quit();
    return told;
  });
  await step("handshake: a pipeline before it is ready", ["OK", "v"], async () => {
    const client = redis.createClient({ ...options, socket: server });
    const told = await Promise.all([client.connect(), client.set("lazy", "v"), client.get("lazy")]);
    await client.quit();
    return told.slice(1);
  });
}

async function errors(c) {
  await step(
    "errors, and the connection continues",
    [
      WRONG_TYPE,
      "ERR wrong number of arguments for 'get' command",
      "ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ",
      "ERR invalid expire time in 'set' command",
      "ERR syntax error",
      "ERR no such key",
      "PONG",
    ],
    async () => [
      await message(c.hSet("s", "f", "v")),
      await message(c.sendCommand(["GET"])),
      await message(c.sendCommand(["NOSUCH", "a", "b"])),
      await message(c.set("s", "v", { PX: -1 })),
      await message(c.sendCommand(["SET", "s", "v", "NX", "XX"])),
      await message(c.rename("none", "x")),
      await c.ping(),
    ],
  );
}

async function servers(c) {
  await step("server: commands of tools", [true, 0, ["k"], { timeout: "0" }, "master", true], async () => [
    /^redis_version:\d+\.\d+\.\d+\r$/m.test(await c.info("server")),
    await c.sendCommand(["WAIT", "0", "0"]),
    await c.commandGetKeys(["SET", "k", "v"]),
    await c.configGet("timeout"),
    (await c.role()).role,
    (await c.time()) !== null,
  ]);
  if (isVersion4) return; // it has no MONITOR
  await step("server: MONITOR", true, async () => {
    const monitor = c.duplicate();
    await monitor.connect();
    const seen = new Promise((resolve) => {
      monitor.monitor((line) => line.includes("watched") && resolve(line)).catch(resolve);
    });
    let line;
    seen.then((told) => {
      line = told;
    });
    await until("it is seen", async () => (await c.set("watched", "1"), line !== undefined));
    await (monitor.destroy ?? monitor.disconnect).call(monitor);
    return /^\d+\.\d{6} \[0 127\.0\.0\.1:\d+\] "SET" "watched" "1"$/.test(line);
  });
}

async function connections(c, options) {
  await step("a killed connection comes back", [1, "PONG", true], async () => {
    const client = await connected(options);
    const id = await client.sendCommand(["CLIENT", "ID"]);
    const back = ready(client);
    const killed = await c.sendCommand(["CLIENT", "KILL", "ID", String(id)]);
    await back;
    const told = [killed, await client.ping(), (await client.sendCommand(["CLIENT", "ID"])) !== id];
    await client.quit();
    return told;
  });
  await step("200 connections at once", [200, "200"], async () => {
    const clients = await Promise.all(Array.from({ length: 200 }, () => connected(options)));
    const counts = await Promise.all(clients.map((client) => client.incr("clients")));
    await Promise.all(clients.map((client) => client.quit()));
    return [new Set(counts).size, await c.get("clients")];
  });
  await step("QUIT", ["OK", false, "ClientClosedError"], async () => {
    const client = await connected(options);
    return [await client.quit(), client.isOpen, (await refusal(client.get("x"))).constructor.name];
  });
}

// CLIENT TRACKING: the client answers from its cache until the server reports a change or an expiry.
async function cache() {
  const kept = new redis.BasicClientSideCache({ ttl: 0, maxEntries: 0, evictPolicy: "LRU" });
  const [c, other] = [await connected({ RESP: 3, clientSideCache: kept }), await connected({})];
  const told = async (key, change) => {
    const invalidated = new Promise((resolve) => {
      kept.on("invalidate", (which) => (which === null || String(which) === key) && resolve());
    });
    const before = [await c.get(key), await c.get(key)];
    await change();
    await invalidated;
    return [...before, await c.get(key)];
  };
  await step("cache: a change invalidates", ["1", "1", "2"], async () => {
    await other.set("c1", "1");
    return told("c1", () => other.set("c1", "2"));
  });
  await step("cache: an expiry invalidates", ["1", "1", null], async () => {
    await other.set("c2", "1", { PX: 60 });
    return told("c2", () => {});
  });
  await step("cache: a script's write invalidates", ["1", "1", "3"], async () => {
    await other.set("c3", "1");
    return told("c3", () => other.eval("return redis.call('set', KEYS[1], '3')", { keys: ["c3"] }));
  });
  await step("cache: FLUSHALL invalidates", ["1", "1", null], async () => {
    await other.set("c4", "1");
    return told("c4", () => other.flushAll());
  });
  await step("cache: an unchanged key is read once", [1, 9], async () => {
    await other.set("c5", "1");
    const before = kept.stats();
    for (let i = 0; i < 10; i++) await c.get("c5");
    const after = kept.stats();
    return [after.missCount - before.missCount, after.hitCount - before.hitCount];
  });
  await c.close();
  await other.close();
}

async function everything(label, options) {
  labelled(label);
  const [c, other] = [await connected(options), await connected(options)];
  await c.flushAll();
  await handshake(options);
  await values(c);
  await talk(c, other, options);
  await errors(c);
  await servers(c);
  await connections(c, options);
  await Promise.all([c.quit(), other.quit()]);
}

run(async () => {
  if (isVersion4) return everything("", {});
  await everything("RESP2: ", { RESP: 2 });
  await everything("RESP3: ", { RESP: 3 });
  labelled("");
  await cache();
});
