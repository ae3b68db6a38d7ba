// The server's HTTP API: requests with the login of this tab, and the live events.

const kLogin = "holdfast-login";
const kSilenceMs = 6000;  // the server sends an event each second
const kRetryMs = [500, 1000, 2000, 4000];

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;  // 0: no answer
  }
}

// Only this tab has the login, and only until it closes.
export const login = {
  set(user, password) {
    const utf8 = new TextEncoder().encode(`${user}:${password}`);
    sessionStorage.setItem(kLogin, `Basic ${btoa(String.fromCharCode(...utf8))}`);
  },
  clear() { sessionStorage.removeItem(kLogin);},
  get() { return sessionStorage.getItem(kLogin);},
};

// The text of an error reply: JSON with `error`, or plain text.
function reason(status, text) {
  if (status === 414)
    return "The name is too long for this page: a request has at most 4 KiB. Use holdfast info.";
  try {
    return JSON.parse(text).error;
  } catch {
    return text.trim();
  }
}

async function request(path, options = {}) {
  // With X-Requested-With the server's 401 has no WWW-Authenticate, so the browser does not ask on its own.
  const headers = {"X-Requested-With": "holdfast", ...options.headers};
  if (login.get()) headers.Authorization = login.get();
  let response;
  try {
    response = await fetch(`/api/v1/${path}`,
        {...options, headers, cache: "no-store", credentials: "omit", redirect: "error"});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer.");
  }
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  const {status} = response;
  throw new ApiError(status, reason(status, text) || `The server answered with status ${status}.`);
}

export async function get(path) { return (await request(path)).json(); }

export async function post(path) { return (await request(path, {method: "POST"})).json(); }

// Calls handle(event, data) for each event of the text/event-stream, until the stream ends.
async function read(stream, handle) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll("\r", "").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const field = (name) => lines.filter((line) => line.startsWith(`${name}:`))
                                  .map((line) => line.slice(name.length + 1).trimStart())
                                  .join("\n");
      handle(field("event"), field("data"));
    }
  }
}

// Follows /api/v1/events, again and again with longer pauses. on.event(name, data), on.open(), and
// on.lost(error, retryInMs) with the reason. After a 401 it pauses until start().
export class Feed {
  constructor(on) {
    this.on = on;
    this.failures = 0;
  }

  start() {
    this.stop();
    this.failures = 0;
    this.connect();
  }

  stop() {
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.abort?.abort();
  }

  async connect() {
    const abort = this.abort = new AbortController();
    const alive = () => {
      clearTimeout(this.silence);
      this.silence = setTimeout(() => abort.abort(new ApiError(0, "The server is silent.")), kSilenceMs);
    };
    let reason = new ApiError(0, "The server closed the connection.");
    try {
      alive();
      const response =
          await request("events", {signal: abort.signal, headers: {Accept: "text/event-stream"}});
      this.failures = 0;
      this.on.open();
      await read(response.body, (name, data) => {
        if (abort !== this.abort) return;
        alive();
        if (name) this.on.event(name, JSON.parse(data));
      });
    } catch (error) {
      reason = error;
    }
    if (abort === this.abort && !(abort.signal.aborted && reason.name === "AbortError")) this.lost(reason);
  }

  lost(reason) {
    clearTimeout(this.silence);
    const pause = reason.status === 401 ? 0 : kRetryMs[Math.min(this.failures++, kRetryMs.length - 1)];
    if (pause) this.retry = setTimeout(() => this.connect(), pause);
    this.on.lost(reason, pause);
  }
}
