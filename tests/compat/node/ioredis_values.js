// ioredis: strings, keys and their expiry, hashes.
"use strict";
const { step, refusal, until } = require("./steps");
const { ALL_BYTES, NOT_INTEGER } = require("./words");

async function strings(c) {
  await step(
    "strings: SET and its options",
    ["OK", null, "OK", "v", null, "OK", "w", null, "v2"],
    async () => [
      await c.set("s", "v", "NX"),
      await c.set("s", "x", "NX"),
      await c.set("s", "v", "XX", "PX", 20000),
      await c.get("s"),
      await c.set("none", "x", "XX"),
      await c.set("s", "w", "KEEPTTL"),
      await c.get("s"),
      await c.get("none"),
      (await c.set("s", "v2", "EX", 100), await c.get("s")),
    ],
  );
  await step("strings: SET GET", ["v2", null, "ReplyError: ERR syntax error"], async () => [
    await c.set("s", "v3", "GET"),
    await c.set("s2", "v", "GET"),
    await refusal(c.set("s", "v", "NX", "XX")),
  ]);
  await step("strings: numbers", [1, 11, 10, 5, "5.75", `ReplyError: ${NOT_INTEGER}`], async () => [
    await c.incr("n"),
    await c.incrby("n", 10),
    await c.decr("n"),
    await c.decrby("n", 5),
    await c.incrbyfloat("n", "0.75"),
    await refusal(c.incr("n")),
  ]);
  await step(
    "strings: exact numbers",
    ["9223372036854775806", "ReplyError: ERR increment or decrement would overflow"],
    async () => {
      await c.set("n", "9223372036854775806");
      return [await c.get("n"), await refusal(c.incrby("n", 2))];
    },
  );
  await step("strings: many at once", ["OK", ["1", null, "2"], 0, 1, ["3", "4"]], async () => [
    await c.mset("m1", 1, "m2", 2),
    await c.mget("m1", "none", "m2"),
    await c.msetnx("m1", 9, "m3", 9),
    await c.msetnx({ m3: 3, m4: 4 }),
    await c.mget("m3", "m4"),
  ]);
}

async function parts(c) {
  await step(
    "strings: parts",
    [5, 9, 9, "hell", "orld", 11, "hello\u0000\u0000\u0000\u0000ld"],
    async () => [
      await c.append("p", "hello"),
      await c.append("p", " wor"),
      await c.strlen("p"),
      await c.getrange("p", 0, 3),
      (await c.append("p", "ld"), await c.getrange("p", -4, -1)),
      await c.setrange("p", 5, "\u0000\u0000\u0000\u0000"),
      await c.get("p"),
    ],
  );
  await step("strings: get and change", ["a", "b", "b", null, -1, true, 1, 0], async () => {
    await c.set("g", "a");
    const told = [
      await c.getset("g", "b"),
      await c.call("GETEX", "g", "PX", 20000),
      await c.call("GETDEL", "g"),
      await c.get("g"),
    ];
    await c.setex("g", 100, "c");
    await c.call("GETEX", "g", "PERSIST");
    told.push(await c.ttl("g"));
    await c.psetex("g", 20000, "d");
    return [...told, (await c.pttl("g")) > 19000, await c.setnx("fresh", 1), await c.setnx("fresh", 2)];
  });
  await step("strings: every byte, in key and value", [true, true, 256], async () => {
    await c.set(ALL_BYTES, ALL_BYTES);
    return [
      ALL_BYTES.equals(await c.getBuffer(ALL_BYTES)),
      (await c.exists(ALL_BYTES)) === 1,
      await c.strlen(ALL_BYTES),
    ];
  });
  await step("strings: 3 MB there and back", [3000000, true], async () => {
    const big = "0123456789".repeat(300000);
    await c.set("big", big);
    return [await c.strlen("big"), (await c.get("big")) === big];
  });
}

async function expiry(c) {
  await step("expiry: set, read, removed", [1, true, 1, -1, -2, -2, 0, 1, 0], async () => {
    await c.set("e", 1);
    return [
      await c.expire("e", 100),
      (await c.pttl("e")) > 99000,
      await c.persist("e"),
      await c.ttl("e"),
      await c.ttl("none"),
      await c.pttl("none"),
      await c.pexpire("none", 5),
      await c.pexpire("e", 0),
      await c.exists("e"),
    ];
  });
  await step("expiry: NX XX GT LT", [0, 1, 0, 1, 0, 1, 0], async () => {
    await c.set("e", 1);
    return [
      await c.call("EXPIRE", "e", 100, "XX"),
      await c.call("EXPIRE", "e", 100, "NX"),
      await c.call("EXPIRE", "e", 100, "NX"),
      await c.call("EXPIRE", "e", 200, "GT"),
      await c.call("EXPIRE", "e", 150, "GT"),
      await c.call("PEXPIRE", "e", 50000, "LT"),
      await c.call("PEXPIRE", "e", 60000, "LT"),
    ];
  });
  await step("expiry: at a time", [1, 4000000000, "4000000000000", 1, 4000000000001], async () => [
    await c.expireat("e", 4000000000),
    await c.call("EXPIRETIME", "e"),
    String(await c.call("PEXPIRETIME", "e")),
    await c.pexpireat("e", 4000000000001),
    await c.call("PEXPIRETIME", "e"),
  ]);
  await step(
    "expiry: comes by itself",
    [
      [1, 1],
      [null, null, -2, -2],
    ],
    async () => {
      await c.set("e", 1, "PX", 40);
      await c.hset("eh", "f", "v");
      await c.pexpire("eh", 40);
      const before = [await c.exists("e"), await c.exists("eh")];
      await until("both have expired", async () => (await c.exists("e", "eh")) === 0);
      return [before, [await c.get("e"), await c.hget("eh", "f"), await c.pttl("e"), await c.pttl("eh")]];
    },
  );
}

async function keys(c) {
  await step("keys: of all kinds", ["string", "hash", "none", 2, 2, "OK", 0, 1, 1, 1, 0], async () => {
    await c.mset("k1", 1, "k2", 2);
    await c.hset("kh", "f", "v");
    return [
      await c.type("k1"),
      await c.type("kh"),
      await c.type("none"),
      await c.touch("k1", "k2", "none"),
      await c.exists("k1", "k1"),
      await c.rename("k1", "k3"),
      await c.renamenx("k3", "k2"),
      await c.call("COPY", "k3", "k4"),
      await c.unlink("k3"),
      await c.del("k2", "none"),
      await c.exists("k3", "k2"),
    ];
  });
  await step("keys: scanned, each once", [300, 300, 300], async () => {
    await Promise.all(Array.from({ length: 300 }, (_, i) => c.set(`scan:${i}`, i)));
    const found = [];
    for await (const some of c.scanStream({ match: "scan:*", count: 20 })) found.push(...some);
    return [
      new Set(found).size,
      found.filter((key) => key.startsWith("scan:")).length,
      (await c.keys("scan:*")).length,
    ];
  });
  await step("keys: databases are apart and swapped", ["OK", 0, "OK", 1, "OK"], async () => {
    await c.set("apart", 1);
    const told = [await c.select(7), await c.dbsize(), await c.swapdb(0, 7), await c.exists("apart")];
    await c.swapdb(0, 7);
    return [...told, await c.select(0)];
  });
}

async function hashes(c) {
  await step("hashes", [2, 0, "1", ["1", null, "2"], { a: "1", b: "2" }, 1, 0, 2, 6, 1, 1, 0], async () => [
    await c.hset("h", { a: 1, b: 2 }),
    await c.hset("h", "a", 1),
    await c.hget("h", "a"),
    await c.hmget("h", "a", "none", "b"),
    await c.hgetall("h"),
    await c.hexists("h", "a"),
    await c.hexists("h", "none"),
    await c.hlen("h"),
    await c.hincrby("h", "a", 5),
    await c.hstrlen("h", "a"),
    await c.hdel("h", "a", "none"),
    await c.hsetnx("h", "b", 9),
  ]);
  await step("hashes: names, values, the empty one", [["b"], ["2"], {}, [], 0, 1, 0], async () => [
    await c.hkeys("h"),
    await c.hvals("h"),
    await c.hgetall("none"),
    await c.hkeys("none"),
    await c.hlen("none"),
    await c.hdel("h", "b"),
    await c.exists("h"),
  ]);
  await step("hashes: 1000 fields scanned", [1000, 1000, "v999"], async () => {
    await c.hmset("hs", Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, `v${i}`])));
    const found = new Map();
    for await (const some of c.hscanStream("hs", { count: 50 })) {
      for (let i = 0; i < some.length; i += 2) found.set(some[i], some[i + 1]);
    }
    return [found.size, await c.hlen("hs"), found.get("f999")];
  });
}

// All steps, in order: later ones use the keys of earlier ones.
async function values(c) {
  await strings(c);
  await parts(c);
  await expiry(c);
  await keys(c);
  await hashes(c);
}

module.exports = { values };
