// The steps that every lock library must pass. The caller describes the library by an object:
//   connect()         -> a party with its own connection:
//     tryLock(resource, ttl) -> a lock, or null if it is held; one attempt
//     lock(resource, ttl)    -> a lock; the library waits for it
//     extend(lock, ttl)      -> the lock, which then expires ttl from now
//     unlock(lock), close()
//   key(resource)     -> the key of the lock
//   value(lock)       -> the value of the key; absent if the library does not tell it
//   names             -> the names that the library can lock, if not all
//   errors            -> outcomes that differ between libraries, see the steps below
"use strict";
const Redis = require("ioredis5");
const { server, step, native, until } = require("./steps");

const CROWD = 50;
const NAMES = ["ключ 鍵 🔑", "x".repeat(5000), "{tag}:a%b", 'with blank, "quote" and\r\nline'];

// Errors are outcomes: a library may report a failure by an exception, or not at all.
async function outcome(promise) {
  try {
    await promise;
    return "done";
  } catch (error) {
    return error;
  }
}

async function holding(library, eye, alice, bob) {
  const key = library.key("r");
  let lock;
  await step("acquire", [1, true, true], async () => {
    lock = await alice.tryLock("r", 20000);
    const left = await eye.pttl(key);
    const value = await eye.get(key);
    return [
      await eye.exists(key),
      left > 19000 && left <= 20000,
      library.value ? value === library.value(lock) : value.length > 0,
    ];
  });
  await step("contention: another is refused and changes nothing", [null, true], async () => {
    const before = await eye.get(key);
    return [await bob.tryLock("r", 20000), before === (await eye.get(key))];
  });
  await step("contention: the same client is refused as well", null, () => alice.tryLock("r", 20000));
  await step("extend", true, async () => {
    await eye.pexpire(key, 1000);
    lock = await alice.extend(lock, 20000);
    return (await eye.pttl(key)) > 19000;
  });
  await step("other owners cannot acquire an extended lock", null, () => bob.tryLock("r", 20000));
  await step("release", ["done", 0], async () => [
    await outcome(alice.unlock(lock)),
    await eye.exists(key),
  ]);
  await step("release again", [library.errors.releaseAgain, 0], async () => [
    await outcome(alice.unlock(lock)),
    await eye.exists(key),
  ]);
  await step("the next acquires at once", "done", () => outcome(bob.tryLock("r", 20000).then(bob.unlock)));
}

async function losing(library, eye, alice, bob) {
  const key = library.key("lost");
  await step("extend of a lock that another holds now", [library.errors.extendLost, "other"], async () => {
    const lock = await alice.tryLock("lost", 20000);
    await eye.set(key, "other");
    return [await outcome(alice.extend(lock, 20000)), await eye.get(key)];
  });
  await eye.del(key);
  await step(
    "release of a lock that another owner holds now",
    [library.errors.releaseLost, "other"],
    async () => {
      const lock = await alice.tryLock("lost", 20000);
      await eye.set(key, "other");
      return [await outcome(alice.unlock(lock)), await eye.get(key)];
    },
  );
  await eye.del(key);
  await step("extend of a lock that was broken", [library.errors.extendLost, 0], async () => {
    const lock = await alice.tryLock("lost", 20000);
    await eye.del(key);
    return [await outcome(alice.extend(lock, 20000)), await eye.exists(key)];
  });
  await step(
    "expiry: a waiter gets the lock then and not before, and only it can release it",
    [true, null, 1],
    async () => {
      const began = Date.now();
      await alice.tryLock("lost", 250);
      const lock = await bob.lock("lost", 20000);
      const waited = Date.now() - began;
      const refused = await alice.tryLock("lost", 20000);
      await bob.unlock(await bob.extend(lock, 20000));
      return [waited >= 249, refused, 1 - (await eye.exists(key))];
    },
  );
  await step("expiry: the late holder's release does not touch the next holder", 1, async () => {
    const late = await alice.tryLock("lost", 100);
    const lock = await bob.lock("lost", 20000);
    await outcome(alice.unlock(late));
    const held = await eye.exists(key);
    await bob.unlock(lock);
    return held;
  });
  await step("a waiter gets it when the holder releases", [true, 0], async () => {
    const lock = await alice.tryLock("lost", 20000);
    const waiting = bob.lock("lost", 20000);
    const early = await Promise.race([waiting, eye.ping()]);
    await alice.unlock(lock);
    await bob.unlock(await waiting);
    return [early === "PONG", await eye.exists(key)];
  });
}

async function rough(library, eye, alice, bob) {
  await step("SCRIPT FLUSH before each call", ["done", 0], async () => {
    await eye.script("FLUSH");
    let lock = await alice.tryLock("flushed", 20000);
    await eye.script("FLUSH");
    lock = await alice.extend(lock, 20000);
    await eye.script("FLUSH");
    return [await outcome(alice.unlock(lock)), await eye.exists(library.key("flushed"))];
  });
  await step("a key of another type is left alone", ["hash", "v"], async () => {
    const key = library.key("hash");
    await eye.hset(key, "f", "v");
    await outcome(alice.tryLock("hash", 20000));
    return [await eye.type(key), await eye.hget(key, "f")];
  });
  const names = library.names ?? NAMES;
  await step(
    "all kinds of names",
    names.map(() => [1, null, 0]),
    async () => {
      const outcomes = [];
      for (const name of names) {
        const lock = await alice.tryLock(name, 20000);
        const held = await eye.exists(library.key(name));
        const refused = await bob.tryLock(name, 20000);
        await alice.unlock(lock);
        outcomes.push([held, refused, await eye.exists(library.key(name))]);
      }
      return outcomes;
    },
  );
  await step("200 locks by one client at once", [200, 0], async () => {
    const all = Array.from({ length: 200 }, (_, i) => `many:${i}`);
    const locks = await Promise.all(all.map((name) => alice.tryLock(name, 20000)));
    const held = await eye.exists(...all.map(library.key));
    await Promise.all(locks.map((lock) => alice.unlock(lock)));
    return [held, await eye.exists(...all.map(library.key))];
  });
}

// Each holder reads and writes the count in two steps. With two holders at once, an increment is lost.
async function crowded(library, eye) {
  await step(`${CROWD} clients fight for one lock`, { most: 1, counted: CROWD, left: 0 }, async () => {
    const parties = await Promise.all(Array.from({ length: CROWD }, () => library.connect()));
    let inside = 0;
    let most = 0;
    await Promise.all(
      parties.map(async (party) => {
        const lock = await party.lock("crowd", 60000);
        most = Math.max(most, ++inside);
        const count = Number(await eye.get("counted"));
        await eye.set("counted", count + 1);
        inside--;
        await party.unlock(lock);
      }),
    );
    await Promise.all(parties.map((party) => party.close()));
    return {
      most,
      counted: Number(await eye.get("counted")),
      left: await eye.exists(library.key("crowd")),
    };
  });
}

// The library and LOCK on one key exclude each other, and the library's release wakes a LOCK that waits.
async function mixed(library, eye, alice) {
  const key = library.key("mixed");
  await native("the library cannot acquire a lock of LOCK", [["other", true], null, 1], async () => {
    const [owner, token] = await eye.call("LOCK", key, "other", 10000);
    const refused = await alice.tryLock("mixed", 20000);
    return [[owner, token > 0], refused, await eye.call("UNLOCK", key, "other")];
  });
  let lock;
  await native("LOCK cannot acquire a lock of the library", [null, 1], async () => {
    lock = await alice.tryLock("mixed", 20000);
    return [await eye.call("LOCK", key, "me", 10000), await eye.exists(key)];
  });
  await native(
    "the library's release wakes LOCK ... WAIT at once",
    [["me", true], true, "me"],
    async () => {
      const waiter = new Redis(server);
      const reply = waiter.call("LOCK", key, "me", 10000, "WAIT", 5000);
      await until("LOCK waits", async () =>
        JSON.stringify(await eye.call("LOCKS", "INFO", key)).includes("waited"),
      );
      const began = Date.now();
      await alice.unlock(lock);
      const [owner, token] = await reply;
      const atOnce = Date.now() - began < 1000;
      waiter.disconnect();
      return [[owner, token > 0], atOnce, await eye.get(key)];
    },
  );
  await eye.del(key);
  await native(
    "the library cannot extend or release what LOCK holds now",
    [1, "me", "me", null],
    async () => {
      lock = await alice.tryLock("mixed", 20000);
      const broken = await eye.call("LOCKS", "BREAK", key);
      await eye.call("LOCK", key, "me", 10000);
      await outcome(alice.extend(lock, 20000));
      const extended = await eye.get(key);
      await outcome(alice.unlock(lock));
      return [broken, extended, await eye.get(key), await alice.tryLock("mixed", 20000)];
    },
  );
  await native("UNLOCK lets the library in again", [1, "done"], async () => [
    await eye.call("UNLOCK", key, "me"),
    await outcome(alice.unlock(await alice.tryLock("mixed", 20000))),
  ]);
}

async function lockSuite(library) {
  const eye = new Redis(server); // reads the keys, and acts as the other clients
  let alice, bob;
  await step("handshake", 3, async () => {
    [alice, bob] = [await library.connect(), await library.connect()];
    const clients = async () => (await eye.client("LIST")).trim().split("\n").length;
    await until("both are connected", async () => (await clients()) === 3);
    return clients();
  });
  await holding(library, eye, alice, bob);
  await losing(library, eye, alice, bob);
  await rough(library, eye, alice, bob);
  await crowded(library, eye);
  await mixed(library, eye, alice);
  await Promise.all([alice.close(), bob.close()]);
  await eye.quit();
}

module.exports = { NAMES, lockSuite, outcome };
