// node-redis: pipelines, transactions, scripts, publish and subscribe.
"use strict";
const { step, refusal, until } = require("./steps");
const { connected, isVersion4, message, ready, redis } = require("./node_redis_client");
const { ALL_BYTES, WRONG_TYPE } = require("./words");

async function pipelines(c) {
  await step("pipeline: in order, each with its own outcome", ["OK", "v", WRONG_TYPE, 1], () =>
    Promise.all([c.set("pl", "v"), c.get("pl"), message(c.hGet("pl", "f")), c.del("pl")]),
  );
  await step("pipeline: 10000 commands", [10000, true], async () => {
    const replies = await Promise.all(Array.from({ length: 10000 }, (_, i) => c.echo(String(i))));
    return [replies.length, replies.every((echo, i) => echo === String(i))];
  });
  await step("pipeline: execAsPipeline", ["OK", 2, "2"], () =>
    c.multi().set("pl", "1").incr("pl").get("pl").execAsPipeline(),
  );
}

async function transactions(c) {
  await step("MULTI: in one transaction", ["OK", 2, 1, { f: "v" }, 2], () =>
    c.multi().set("t", "1").incr("t").hSet("th", "f", "v").hGetAll("th").del(["t", "th"]).exec(),
  );
  await step("MULTI: an error when it runs", ["OK", WRONG_TYPE, "v"], async () => {
    const error = await refusal(c.multi().set("t", "v").hLen("t").get("t").exec());
    return error.replies.map((reply) => reply.message ?? reply);
  });
  const aborted = isVersion4
    ? "EXECABORT Transaction discarded because of previous errors."
    : "ERR wrong number of arguments for 'get' command";
  await step("MULTI: an error when it is queued", [aborted, "v"], async () => {
    const error = await message(c.multi().set("t", "w").addCommand(["GET"]).exec());
    return [error, await c.get("t")];
  });
  await step("MULTI: into another database", ["OK", "OK", ["apart"], "OK"], async () => {
    await c.multi().select(9).set("apart", "1").select(0).exec();
    return c
      .multi()
      .select(9)
      .ping()
      .keys("*")
      .select(0)
      .exec()
      .then(([selected, pong, found, back]) => [selected, pong === "PONG" ? "OK" : pong, found, back]);
  });
}

async function watching(c, other) {
  await step(
    "WATCH: untouched, changed, expired, forgotten",
    [["OK"], "WatchError", "WatchError", ["OK"]],
    async () => {
      const told = [];
      const attempt = async (between) => {
        await c.set("w", "1", { PX: 20000 });
        await c.watch("w");
        await between();
        told.push(
          await c
            .multi()
            .set("w2", "1")
            .exec()
            .catch((error) => error.constructor.name),
        );
      };
      await attempt(() => other.get("w"));
      await attempt(() => other.set("w", "2"));
      await attempt(async () => {
        await other.pExpire("w", 20);
        await until("it has expired", async () => (await other.exists("w")) === 0);
      });
      await attempt(async () => {
        await other.set("w", "2");
        await c.unwatch();
      });
      return told;
    },
  );
}

async function scripts(c, options) {
  await step(
    "scripts: values both ways",
    [["k1", "k2", "a1"], 3, "OK", null, 1, [1, 2], [null, 7]],
    async () => [
      await c.eval("return {KEYS[1], KEYS[2], ARGV[1]}", { keys: ["k1", "k2"], arguments: ["a1"] }),
      await c.eval("return 3.99"),
      await c.eval("return redis.call('SET', KEYS[1], 'v')", { keys: ["sc"] }),
      await c.eval("return false"),
      await c.eval("return true"),
      await c.eval("return {1, 2, nil, 4}"),
      await c.eval("return {false, 7}"),
    ],
  );
  await step(
    "scripts: by their hash",
    [40, [1, 0], "there", "NOSCRIPT No matching script. Please use EVAL."],
    async () => {
      const sha = await c.scriptLoad("return 'there'");
      const exists = (await c.scriptExists([sha, "0".repeat(40)])).map(Number);
      const told = [sha.length, exists, await c.evalSha(sha)];
      await c.scriptFlush();
      return [...told, await message(c.evalSha(sha))];
    },
  );
  await step(
    "scripts: defineScript, also after SCRIPT FLUSH",
    [
      [1, 0],
      [1, 0],
    ],
    async () => {
      const releaseIf = redis.defineScript({
        NUMBER_OF_KEYS: 1,
        SCRIPT:
          "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
        transformArguments: (key, value) => [key, value], // of version 4
        parseCommand: (parser, key, value) => {
          parser.pushKey(key);
          parser.push(value);
        },
        transformReply: isVersion4 ? (reply) => reply : undefined,
      });
      const client = await connected({ ...options, scripts: { releaseIf } });
      const twice = async () => {
        await client.set("d", "me");
        return [await client.releaseIf("d", "me"), await client.releaseIf("d", "me")];
      };
      const first = await twice();
      await c.scriptFlush();
      const told = [first, await twice()];
      await client.quit();
      return told;
    },
  );
  await step("scripts: errors", ["My error", "ERR ONE", true], async () => [
    await message(c.eval("return {err = 'My error'}")),
    await message(c.eval("return redis.error_reply('ONE')")),
    (await message(c.eval("error('boom')"))).includes("boom"),
  ]);
}

// Further events in the life of a subscriber.
async function subscribed(c, subscriber, heard, listener) {
  await step("pub/sub: sharded names", [["sh", "sharded"]], async () => {
    heard.length = 0;
    await subscriber.sSubscribe("sh", listener);
    await c.sendCommand(["SPUBLISH", "sh", "sharded"]);
    await until("it has come", async () => heard.length === 1);
    await subscriber.sUnsubscribe("sh");
    return heard;
  });
  await step("pub/sub: a key's expiry causes an event", [["__keyevent@0__:expired", "told"]], async () => {
    heard.length = 0;
    await c.configSet("notify-keyspace-events", "Ex");
    await subscriber.pSubscribe("__keyevent@*__:expired", listener);
    await c.set("told", "1", { PX: 30 });
    await until("it is told", async () => heard.length === 1);
    await c.configSet("notify-keyspace-events", "");
    return heard;
  });
  await step("pub/sub: every byte", true, async () => {
    const bytes = new Promise((resolve) => subscriber.subscribe("bytes", resolve, true));
    await until("it is subscribed", async () => (await c.pubSubNumSub(["bytes"])).bytes === 1);
    await c.publish("bytes", ALL_BYTES);
    return ALL_BYTES.equals(await bytes);
  });
  await step("pub/sub: subscriptions outlive the connection", [["ch1", "again"]], async () => {
    heard.length = 0;
    const back = ready(subscriber);
    await c.sendCommand(["CLIENT", "KILL", "TYPE", "pubsub"]);
    await back;
    await until("it is subscribed again", async () => (await c.pubSubNumSub(["ch1"])).ch1 === 1);
    await c.publish("ch1", "again");
    await until("it has come", async () => heard.length === 1);
    return heard;
  });
  await step("pub/sub: unsubscribe and continue", ["PONG", "v", 0], async () => {
    await subscriber.unsubscribe(["ch1", "ch2", "bytes"]);
    await subscriber.pUnsubscribe(["p*", "ch?", "__keyevent@*__:expired"]);
    await c.set("after", "v");
    // Versions 5 and 6 still return the bytes of RESP2 strings.
    const told = [await subscriber.ping(), await subscriber.get("after")].map(String);
    return [...told, await c.publish("ch1", "nobody")];
  });
}

async function subscribing(c) {
  const subscriber = c.duplicate();
  subscriber.on("error", () => {});
  await subscriber.connect();
  const heard = [];
  const listener = (text, channel) => heard.push([channel, text]);
  await step(
    "pub/sub: subscribe and publish",
    [
      [1, 1, 2, 0],
      [
        ["ch1", "one"],
        ["p1", "two"],
        ["ch2", "x\r\ny"],
      ],
    ],
    async () => {
      await subscriber.subscribe(["ch1", "ch2"], listener);
      await subscriber.pSubscribe("p*", listener);
      const counts = [await c.publish("ch1", "one"), await c.publish("p1", "two")];
      await subscriber.pSubscribe("ch?", () => {});
      counts.push(await c.publish("ch2", "x\r\ny"), await c.publish("none", "z"));
      await until("all have come", async () => heard.length === 3);
      return [counts, heard];
    },
  );
  await step("pub/sub: channels and subscribers", [["ch1", "ch2"], { ch1: 1, none: 0 }, 2], async () => [
    (await c.pubSubChannels()).sort(),
    await c.pubSubNumSub(["ch1", "none"]),
    await c.pubSubNumPat(),
  ]);
  await step(
    "pub/sub: from a script and from MULTI",
    [
      ["p9", "script"],
      ["ch1", "multi"],
    ],
    async () => {
      heard.length = 0;
      await c.eval("return redis.call('publish', KEYS[1], 'script')", { keys: ["p9"] });
      await c.multi().publish("ch1", "multi").exec();
      await until("both have come", async () => heard.length === 2);
      return heard;
    },
  );
  await subscribed(c, subscriber, heard, listener);
  await subscriber.quit();
}

async function talk(c, other, options) {
  await pipelines(c);
  await transactions(c);
  await watching(c, other);
  await scripts(c, options);
  await subscribing(c);
}

module.exports = { talk };
