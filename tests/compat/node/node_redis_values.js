// node-redis: strings, keys and their expiry, hashes.
"use strict";
const { step, until } = require("./steps");
const { gathered, isVersion4, message, withBuffers } = require("./node_redis_client");
const { ALL_BYTES, NOT_INTEGER } = require("./words");

async function strings(c) {
  await step(
    "strings: SET and its options",
    ["OK", null, "OK", "v", null, "w", "w", null, NOT_INTEGER],
    async () => [
      await c.set("s", "v", { NX: true }),
      await c.set("s", "x", { NX: true }),
      await c.set("s", "v", { XX: true, PX: 20000 }),
      await c.get("s"),
      await c.set("none", "x", { XX: true }),
      (await c.set("s", "w", { KEEPTTL: true }), await c.get("s")),
      await c.set("s", "u", { GET: true }),
      await c.get("none"),
      await message(c.sendCommand(["SET", "s", "v", "PX", "soon"])),
    ],
  );
  await step("strings: numbers", [1, 11, 10, 5, "5.75", NOT_INTEGER], async () => [
    await c.incr("n"),
    await c.incrBy("n", 10),
    await c.decr("n"),
    await c.decrBy("n", 5),
    String(await c.incrByFloat("n", 0.75)),
    await message(c.incr("n")),
  ]);
  await step("strings: many at once", ["OK", ["1", null, "2"], 0, 1, ["3", "4"]], async () => [
    await c.mSet({ m1: "1", m2: "2" }),
    await c.mGet(["m1", "none", "m2"]),
    Number(await c.mSetNX({ m1: "9", m3: "9" })),
    Number(
      await c.mSetNX([
        ["m3", "3"],
        ["m4", "4"],
      ]),
    ),
    await c.mGet(["m3", "m4"]),
  ]);
  await step("strings: parts", [5, 9, "hell", 11, 11], async () => [
    await c.append("p", "hello"),
    await c.append("p", " wor"),
    await c.getRange("p", 0, 3),
    await c.setRange("p", 9, "ld"),
    await c.strLen("p"),
  ]);
  await step("strings: get and change", ["a", "b", true, "b", null, 1, 0], async () => {
    await c.set("g", "a");
    const told = [
      await c.getSet("g", "b"),
      await c.getEx("g", isVersion4 ? { PX: 20000 } : { type: "PX", value: 20000 }),
    ];
    told.push((await c.pTTL("g")) > 19000, await c.getDel("g"), await c.get("g"));
    return [...told, Number(await c.setNX("fresh", "1")), Number(await c.setNX("fresh", "2"))];
  });
  await step("strings: every byte, in key and value", [true, 256], () =>
    withBuffers(c, async (b, first) => {
      await c.set(ALL_BYTES, ALL_BYTES);
      return [ALL_BYTES.equals(await b.get(...first, ALL_BYTES)), await c.strLen(ALL_BYTES)];
    }),
  );
  await step("strings: 3 MB there and back", [3000000, true], async () => {
    const big = "0123456789".repeat(300000);
    await c.set("big", big);
    return [await c.strLen("big"), (await c.get("big")) === big];
  });
}

async function expiry(c) {
  await step("expiry: set, read, removed", [1, true, 1, -1, -2, -2, 0], async () => {
    await c.set("e", "1");
    return [
      Number(await c.expire("e", 100)),
      (await c.pTTL("e")) > 99000,
      Number(await c.persist("e")),
      await c.ttl("e"),
      await c.ttl("none"),
      await c.pTTL("none"),
      Number(await c.pExpire("none", 5)),
    ];
  });
  await step("expiry: NX XX GT LT", [0, 1, 0, 1, 0, 1], async () => {
    const told = [];
    for (const [ms, mode] of [
      [100000, "XX"],
      [100000, "NX"],
      [100000, "NX"],
      [200000, "GT"],
      [150000, "GT"],
      [50000, "LT"],
    ]) {
      told.push(Number(await c.pExpire("e", ms, mode)));
    }
    return told;
  });
  await step("expiry: at a time", [1, 4000000000, 1, 4000000000001], async () => [
    Number(await c.expireAt("e", 4000000000)),
    await c.expireTime("e"),
    Number(await c.pExpireAt("e", 4000000000001)),
    await c.pExpireTime("e"),
  ]);
  await step("expiry: comes by itself", [1, null, -2], async () => {
    await c.set("e", "1", { PX: 40 });
    const before = await c.exists("e");
    await until("it has expired", async () => (await c.exists("e")) === 0);
    return [before, await c.get("e"), await c.pTTL("e")];
  });
}

async function keys(c) {
  await step("keys: of all kinds", ["string", "hash", "none", 2, 2, "OK", 0, 1, 1, 1, 0], async () => {
    await c.mSet({ k1: "1", k2: "2" });
    await c.hSet("kh", "f", "v");
    return [
      await c.type("k1"),
      await c.type("kh"),
      await c.type("none"),
      await c.touch(["k1", "k2", "none"]),
      await c.exists(["k1", "k1"]),
      await c.rename("k1", "k3"),
      Number(await c.renameNX("k3", "k2")),
      Number(await c.copy("k3", "k4")),
      await c.unlink("k3"),
      await c.del(["k2", "none"]),
      await c.exists(["k3", "k2"]),
    ];
  });
  await step("keys: scanned, each once", [300, true, 300], async () => {
    await Promise.all(Array.from({ length: 300 }, (_, i) => c.set(`scan:${i}`, String(i))));
    const found = await gathered(c.scanIterator({ MATCH: "scan:*", COUNT: 20 }));
    return [
      new Set(found).size,
      found.every((key) => key.startsWith("scan:")),
      (await c.keys("scan:*")).length,
    ];
  });
  await step("keys: databases are apart", [0, "OK", 1, "ERR DB index is out of range"], async () => {
    await c.set("apart", "1");
    await c.select(7);
    const told = [await c.dbSize(), await c.swapDb(0, 7), await c.exists("apart")];
    await c.swapDb(0, 7);
    await c.select(0);
    return [...told, await message(c.sendCommand(["SELECT", "99"]))];
  });
}

async function hashes(c) {
  await step("hashes", [2, 0, "1", ["1", null, "2"], { a: "1", b: "2" }, 1, 0, 2, 6, 1, 1, 0], async () => [
    await c.hSet("h", { a: "1", b: "2" }),
    await c.hSet("h", "a", "1"),
    await c.hGet("h", "a"),
    await c.hmGet("h", ["a", "none", "b"]),
    await c.hGetAll("h"),
    Number(await c.hExists("h", "a")),
    Number(await c.hExists("h", "none")),
    await c.hLen("h"),
    await c.hIncrBy("h", "a", 5),
    await c.hStrLen("h", "a"),
    await c.hDel("h", ["a", "none"]),
    Number(await c.hSetNX("h", "b", "9")),
  ]);
  await step("hashes: names, values, the empty one", [["b"], ["2"], {}, [], 0], async () => [
    await c.hKeys("h"),
    await c.hVals("h"),
    await c.hGetAll("none"),
    await c.hKeys("none"),
    await c.hLen("none"),
  ]);
  await step("hashes: 1000 fields scanned", [1000, "v999"], async () => {
    await c.hSet("hs", Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, `v${i}`])));
    const found = await gathered(c.hScanIterator("hs", { COUNT: 50 }));
    const map = new Map(found.map(({ field, value }) => [field, value]));
    return [map.size, map.get("f999")];
  });
}

// All steps, in order: later ones use the keys of earlier ones.
async function values(c) {
  await strings(c);
  await expiry(c);
  await keys(c);
  await hashes(c);
}

module.exports = { values };
