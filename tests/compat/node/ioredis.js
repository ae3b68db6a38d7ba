// ioredis, in the version whose package name is the argument: all uses of a client, step by step. Version 6
// speaks RESP3: it runs the steps once more in RESP2, and its RESP3 replies have steps of their own.
"use strict";
const { once } = require("events");
const { server, labelled, step, refusal, run } = require("./steps");
const { values } = require("./ioredis_values");
const { talk } = require("./ioredis_talk");
const { NOT_INTEGER, WRONG_TYPE } = require("./words");

const Redis = require(process.argv[2]);
const speaksResp3 = process.argv[2] === "ioredis";

async function handshake(options) {
  await step(
    "handshake: name and database of the connection",
    ["PONG", "a-name", "3", "master", 1, 0],
    async () => {
      const client = new Redis({ ...server, ...options, connectionName: "a-name", db: 3 });
      await once(client, "ready");
      const list = await client.client("LIST");
      await client.set("here", 1);
      const told = [
        await client.ping(),
        await client.client("GETNAME"),
        list.match(/ name=a-name .* db=(\d+)/)[1],
        (await client.role())[0],
        await client.exists("here"),
      ];
      await client.select(0);
      told.push(await client.exists("here"));
      await client.quit();
      return told;
    },
  );
  await step(
    "handshake: a lazy connection and its offline queue",
    ["wait", "OK", "v", "ready"],
    async () => {
      const client = new Redis({ ...server, ...options, lazyConnect: true });
      const before = client.status;
      const told = await Promise.all([client.set("lazy", "v"), client.get("lazy")]);
      const after = client.status;
      await client.quit();
      return [before, ...told, after];
    },
  );
}

async function errors(c) {
  await step(
    "errors",
    [
      `ReplyError: ${WRONG_TYPE}`,
      `ReplyError: ${NOT_INTEGER}`,
      "ReplyError: ERR wrong number of arguments for 'get' command",
      "ReplyError: ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ",
      "ReplyError: ERR invalid expire time in 'set' command",
      "ReplyError: ERR DB index is out of range",
      "ReplyError: ERR no such key",
    ],
    async () => [
      await refusal(c.hset("s", "f", "v")),
      await refusal(c.set("s", "v", "PX", "soon")),
      await refusal(c.call("GET")),
      await refusal(c.call("NOSUCH", "a", "b")),
      await refusal(c.set("s", "v", "PX", -1)),
      await refusal(c.select(99)),
      await refusal(c.rename("none", "x")),
    ],
  );
  await step("errors: the connection continues", "PONG", () => c.ping());
}

async function servers(c) {
  await step(
    "server: commands of tools",
    [true, true, "0", 0, "string", ["k"], 2, ["timeout", "0"]],
    async () => {
      const info = await c.info();
      await c.set("o", "v");
      return [
        /^redis_version:\d+\.\d+\.\d+\r$/m.test(info),
        /^# Server\r$/m.test(info),
        info.match(/^loading:(\d)/m)[1],
        await c.wait(0, 0),
        typeof (await c.object("ENCODING", "o")),
        await c.command("GETKEYS", "SET", "k", "v"),
        (await c.time()).length,
        [await c.config("GET", "timeout")].flat(),
      ];
    },
  );
  await step("server: MONITOR", ["set", "watched", "1"], async () => {
    const monitor = await c.monitor();
    const seen = new Promise((resolve) => {
      monitor.on("monitor", (_, args) => args[1] === "watched" && resolve(args));
    });
    await c.set("watched", 1);
    const args = await seen;
    monitor.disconnect();
    return args;
  });
}

async function connections(c, options) {
  await step("a killed connection comes back", [1, "PONG", true], async () => {
    const client = new Redis({ ...server, ...options, retryStrategy: () => 5 });
    await client.ping();
    const id = await client.client("ID");
    const killed = await c.client("KILL", "ID", id);
    const again = await client.ping();
    const told = [killed, again, (await client.client("ID")) !== id];
    await client.quit();
    return told;
  });
  await step("200 connections at once", [200, "200"], async () => {
    const clients = Array.from({ length: 200 }, () => new Redis({ ...server, ...options }));
    const counts = await Promise.all(clients.map((client) => client.incr("clients")));
    await Promise.all(clients.map((client) => client.quit()));
    return [new Set(counts).size, await c.get("clients")];
  });
  await step("commands gathered by themselves", ["OK", "1", "2"], async () => {
    const client = new Redis({ ...server, ...options, enableAutoPipelining: true });
    const told = await Promise.all([client.mset("x", 1, "y", 2), client.get("x"), client.get("y")]);
    await client.quit();
    return told;
  });
  await step("QUIT", ["OK", "end", "Error: Connection is closed."], async () => {
    const client = new Redis({ ...server, ...options });
    await client.ping();
    const ended = once(client, "end");
    const reply = await client.quit();
    await ended;
    return [reply, client.status, await refusal(client.get("x"))];
  });
}

async function resp3Replies() {
  const c = new Redis({ ...server, replyMapping: "resp3" });
  await step("maps as objects", [{ f: "v", g: "" }, { timeout: "0" }, 3], async () => {
    await c.hset("m", "f", "v", "g", "");
    return [await c.hgetall("m"), await c.config("GET", "timeout"), (await c.call("HELLO")).proto];
  });
  await step("maps and null from scripts", [null, { map: [] }, true], async () => [
    await c.eval("return false", 0),
    new Map(Object.entries(await c.eval("redis.setresp(3) return redis.call('hgetall', 'none')", 0))),
    await c.eval("redis.setresp(3) return true", 0),
  ]);
  await c.quit();
}

async function everything(label, options) {
  labelled(label);
  const [c, other] = [new Redis({ ...server, ...options }), new Redis({ ...server, ...options })];
  await c.flushall();
  await handshake(options);
  await values(c);
  await talk(c, other, options);
  await errors(c);
  await servers(c);
  await connections(c, options);
  await Promise.all([c.quit(), other.quit()]);
}

run(async () => {
  await everything("", {});
  if (!speaksResp3) return;
  await everything("RESP2: ", { protocol: 2 });
  labelled("RESP3 replies: ");
  await resp3Replies();
});
