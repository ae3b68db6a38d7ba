// ioredis: pipelines, transactions, scripts, publish and subscribe.
"use strict";
const { once } = require("events");
const { server, step, refusal, until } = require("./steps");
const { ALL_BYTES, WRONG_TYPE } = require("./words");

const Redis = require(process.argv[2]);

async function pipelines(c) {
  await step(
    "pipeline: in order, errors in their places",
    [[null, "OK"], [null, "v"], [`ReplyError: ${WRONG_TYPE}`], [null, 1]],
    () => c.pipeline().set("pl", "v").get("pl").hget("pl", "f").del("pl").exec(),
  );
  await step("pipeline: 10000 commands", [10000, 0, 9999], async () => {
    const pipeline = c.pipeline();
    for (let i = 0; i < 10000; i++) pipeline.echo(String(i));
    const replies = await pipeline.exec();
    return [
      replies.length,
      replies.filter(([error, echo], i) => error || echo !== String(i)).length,
      Number(replies[9999][1]),
    ];
  });
}

async function transactions(c) {
  await step(
    "MULTI: in one transaction",
    [
      [null, "OK"],
      [null, 2],
      [null, 1],
      [null, { f: "v" }],
      [null, 2],
    ],
    () => c.multi().set("t", 1).incr("t").hset("th", "f", "v").hgetall("th").del("t", "th").exec(),
  );
  await step(
    "MULTI: an error when it runs",
    [[null, "OK"], [`ReplyError: ${WRONG_TYPE}`], [null, "v"]],
    () => c.multi().set("t", "v").hlen("t").get("t").exec(),
  );
  await step(
    "MULTI: an error when it is queued",
    ["ReplyError: EXECABORT Transaction discarded because of previous errors.", "v"],
    async () => {
      const error = await refusal(c.multi().set("t", "w").call("GET").exec());
      return [error, await c.get("t")];
    },
  );
  await step(
    "MULTI: without a pipeline",
    [
      "OK",
      "QUEUED",
      "QUEUED",
      [
        [null, "OK"],
        [null, "x"],
      ],
    ],
    async () => [
      await c.multi({ pipeline: false }),
      await c.set("t", "x"),
      await c.get("t"),
      await c.exec(),
    ],
  );
  await step(
    "MULTI: discarded",
    ["OK", "QUEUED", "OK", "x", "ReplyError: ERR EXEC without MULTI"],
    async () => [
      await c.multi({ pipeline: false }),
      await c.set("t", "y"),
      await c.discard(),
      await c.get("t"),
      await refusal(c.call("EXEC")),
    ],
  );
}

async function watching(c, other) {
  await step(
    "WATCH: untouched, changed, expired, forgotten",
    [[[null, "OK"]], null, null, [[null, "OK"]]],
    async () => {
      const told = [];
      const attempt = async (between) => {
        await c.set("w", 1, "PX", 20000);
        await c.watch("w");
        await between();
        told.push(await c.multi().set("w2", 1).exec());
      };
      await attempt(() => other.get("w"));
      await attempt(() => other.set("w", 2));
      await attempt(async () => {
        await other.pexpire("w", 20);
        await until("it has expired", async () => (await other.exists("w")) === 0);
      });
      await attempt(async () => {
        await other.set("w", 2);
        await c.unwatch();
      });
      return told;
    },
  );
}

async function scripts(c) {
  await step(
    "scripts: values both ways",
    [["k1", "k2", "a1"], 3, "OK", null, 1, [1, 2], [null, 7], 16, "1000000000000000"],
    async () => [
      await c.eval("return {KEYS[1], KEYS[2], ARGV[1]}", 2, "k1", "k2", "a1"),
      await c.eval("return 3.99", 0),
      await c.eval("return redis.call('SET', KEYS[1], 'v')", 1, "sc"),
      await c.eval("return false", 0),
      await c.eval("return true", 0),
      await c.eval("return {1, 2, nil, 4}", 0),
      await c.eval("return {false, 7}", 0),
      await c.eval("return redis.call('append', KEYS[1], 1e15)", 1, "number"),
      await c.get("number"),
    ],
  );
  await step(
    "scripts: by their hash",
    [40, [1, 0], "there", "ReplyError: NOSCRIPT No matching script. Please use EVAL."],
    async () => {
      const sha = await c.script("LOAD", "return 'there'");
      const exists = await c.script("EXISTS", sha, "0".repeat(40));
      const told = [sha.length, exists, await c.evalsha(sha, 0)];
      await c.script("FLUSH");
      return [...told, await refusal(c.evalsha(sha, 0))];
    },
  );
  await step(
    "scripts: defineCommand loads by itself, also after SCRIPT FLUSH",
    [[1, 0], [1, 0], [[null, 1]]],
    async () => {
      c.defineCommand("releaseIf", {
        numberOfKeys: 1,
        lua: "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
      });
      const twice = async () => {
        await c.set("d", "me");
        return [await c.releaseIf("d", "me"), await c.releaseIf("d", "me")];
      };
      const first = await twice();
      await c.script("FLUSH");
      const second = await twice();
      await c.script("FLUSH");
      await c.set("d", "me");
      return [first, second, await c.pipeline().releaseIf("d", "me").exec()];
    },
  );
}

async function roughScripts(c) {
  await step("scripts: every byte", true, async () =>
    ALL_BYTES.equals(
      await c.evalBuffer(
        "redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])",
        1,
        ALL_BYTES,
        ALL_BYTES,
      ),
    ),
  );
  await step(
    "scripts: errors",
    ["ReplyError: My error", "ReplyError: ERR ONE", "ReplyError", true, "caught ERR"],
    async () => {
      const failing = async (script) => refusal(c.eval(script, 0));
      const runtime = await failing("error('boom')");
      return [
        await failing("return {err = 'My error'}"),
        await failing("return redis.error_reply('ONE')"),
        runtime.name,
        runtime.message.includes("boom"),
        await c.eval("return 'caught ' .. redis.pcall('incr').err:sub(1, 3)", 0),
      ];
    },
  );
}

// Further events in the life of a subscriber.
async function subscribed(c, subscriber, heard) {
  await step(
    "pub/sub: a key's expiry causes an event",
    ["__keyevent@*__:expired", "__keyevent@0__:expired", "told"],
    async () => {
      heard.length = 0;
      await c.config("SET", "notify-keyspace-events", "Ex");
      await subscriber.psubscribe("__keyevent@*__:expired");
      await c.set("told", 1, "PX", 30);
      await until("it is told", async () => heard.length === 1);
      await c.config("SET", "notify-keyspace-events", "");
      return heard[0];
    },
  );
  await step("pub/sub: subscriptions outlive the connection", [["ch1", "again"]], async () => {
    heard.length = 0;
    const back = once(subscriber, "ready");
    await c.client("KILL", "TYPE", "pubsub");
    await back;
    await until("it is subscribed again", async () => (await c.pubsub("NUMSUB", "ch1"))[1] === 1);
    await c.publish("ch1", "again");
    await until("it has come", async () => heard.length === 1);
    return heard;
  });
  await step("pub/sub: unsubscribe and continue", [true, "PONG", "v"], async () => {
    await subscriber.unsubscribe("ch1", "ch2");
    const left = await subscriber.punsubscribe("p*", "q?", "ch2", "__keyevent@*__:expired");
    await c.set("after", "v");
    return [left === 0, await subscriber.ping(), await subscriber.get("after")];
  });
}

async function subscribing(c, options) {
  const subscriber = new Redis({ ...server, ...options });
  const heard = [];
  subscriber.on("message", (...args) => heard.push(args));
  subscriber.on("pmessage", (...args) => heard.push(args));
  await step("pub/sub: subscribe", [1, 2, 4], async () => [
    await subscriber.subscribe("ch1"),
    await subscriber.subscribe("ch2"),
    await subscriber.psubscribe("p*", "q?"),
  ]);
  await step("pub/sub: channels and subscribers", [["ch1", 1, "none", 0], ["ch1", "ch2"], 2], async () => [
    await c.pubsub("NUMSUB", "ch1", "none"),
    (await c.pubsub("CHANNELS")).sort(),
    await c.pubsub("NUMPAT"),
  ]);
  await step(
    "pub/sub: messages",
    [
      [1, 1, 2, 0],
      [
        ["ch1", "one"],
        ["p*", "p1", "two"],
        ["ch2", "x\r\ny"],
      ],
    ],
    async () => {
      const counts = [await c.publish("ch1", "one"), await c.publish("p1", "two")];
      await subscriber.psubscribe("ch2");
      counts.push(await c.publish("ch2", "x\r\ny"), await c.publish("none", "z"));
      await until("all have come", async () => heard.length >= 4);
      return [counts, heard.slice(0, 3)];
    },
  );
  await step(
    "pub/sub: from a script and from MULTI",
    [
      ["ch1", "script"],
      ["ch1", "multi"],
    ],
    async () => {
      heard.length = 0;
      await c.eval("return redis.call('publish', KEYS[1], 'script')", 1, "ch1");
      await c.multi().publish("ch1", "multi").exec();
      await until("both have come", async () => heard.length === 2);
      return heard;
    },
  );
  await subscribed(c, subscriber, heard);
  await subscriber.quit();
}

async function talk(c, other, options) {
  await pipelines(c);
  await transactions(c);
  await watching(c, other);
  await scripts(c);
  await roughScripts(c);
  await subscribing(c, options);
}

module.exports = { talk };
