// The HTTP door that @upstash/redis expects in front of a server: a command, a pipeline or a transaction
// as JSON, and the replies as JSON. It passes each command on as it is.
"use strict";
const http = require("http");
const Redis = require("ioredis5");
const { server } = require("./steps");

async function answer(redis, [command, ...words]) {
  try {
    return { result: await redis.call(command, words.map(String)) };
  } catch (error) {
    return { error: error.message };
  }
}

async function transaction(redis, commands) {
  const replies = await redis.multi(commands.map((words) => words.map(String))).exec();
  return replies.map(([error, result]) => (error ? { error: error.message } : { result }));
}

function reply(redis, url, sent) {
  if (url === "/multi-exec") return transaction(redis, sent);
  if (url === "/pipeline") return Promise.all(sent.map((each) => answer(redis, each)));
  return answer(redis, sent);
}

async function serve(redis, request, response) {
  let body = "";
  for await (const piece of request) body += piece;
  const got = await reply(redis, request.url, JSON.parse(body));
  response.writeHead(got.error ? 400 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(got));
}

// Opens a door to a database, and returns its address and a function that closes it.
async function open(db) {
  const redis = new Redis({ ...server, db });
  const door = http.createServer((request, response) => serve(redis, request, response));
  await new Promise((resolve) => door.listen(0, "127.0.0.1", resolve));
  const close = async () => {
    door.closeAllConnections();
    await new Promise((resolve) => door.close(resolve));
    await redis.quit();
  };
  return { url: `http://127.0.0.1:${door.address().port}`, close };
}

module.exports = { open };
