// One lock: its holders, its queue in order, its history, and the two actions of an operator.
import {ApiError, get, post} from "./api.js";
import {confirmAction} from "./dialogs.js";
import {announce, el, notice, setText, Table} from "./dom.js";
import {clock, count, duration, plural, short, timeLeft} from "./format.js";

const kEvents = 50;
const kHistoryPauseMs = 400;  // between two readings of the history
const kNamedHolders = 5;      // that a question names

const modeText = (r) => r.mode === "limit" ? `semaphore of ${r.limit}` : r.mode;
const tokensOf = (lock) => lock.holders.map((h) => h.token).join();
const clientText = (r) => [r.name, r.addr].filter(Boolean).join(" ") || "unknown";

const kHolders = [
  {label: "Holder", class: "key", cell: (r) => r.owner},
  {label: "Note", class: "note", cell: (r) => r.note},
  {label: "Mode", cell: modeText},
  {label: "Token", class: "number", cell: (r) => String(r.token)},
  {label: "Held for", class: "number", cell: (r) => duration(r.held_ms)},
  {label: "Time left", class: "number", cell: (r) => timeLeft(r.ttl_ms)},
  {label: "Client", class: "client", cell: clientText},
];
const kWaiters = [
  {label: "Place", class: "number", cell: (r, index) => count(index + 1)},
  {label: "Waiter", class: "key", cell: (r) => r.owner},
  {label: "Note", class: "note", cell: (r) => r.note},
  {label: "Mode", cell: modeText},
  {label: "Waits for", class: "number", cell: (r) => duration(r.waited_ms)},
  {
    label: "Gives up in",
    class: "number",
    cell: (r) => r.timeout_ms < 0 ? "never" : duration(r.timeout_ms)
  },
  {label: "Client", class: "client", cell: clientText},
];
// Events by their meaning: the colour of the mark, and the text.
const kEventTexts = {
  granted: ["good", "acquired the lock"],
  released: ["plain", "released the lock"],
  expired: ["bad", "lost the lock: its TTL ended"],
  broken: ["bad", "lost the lock: an operator broke it"],
  lost: ["bad", "lost the lock: its session ended"],
  deleted: ["bad", "lost the lock: the key was deleted"],
  overwritten: ["bad", "lost the lock: the key was overwritten"],
  timeout: ["plain", "stopped waiting: timeout"],
  deadlock: ["bad", "was refused: deadlock"],
  disconnected: ["plain", "stopped waiting: disconnected"],
  unblocked: ["plain", "stopped waiting: unblocked"],
  revoke: ["plain", "was asked to release the lock"],
};

function eventItem(event) {
  const [kind, text] = kEventTexts[event.event] ?? ["plain", event.event];
  const facts = [
    event.token ? `token ${event.token}` : "",
    event.waited ? `waited ${duration(event.waited)}` : "",
    event.held ? `held ${duration(event.held)}` : "",
    event.addr,
  ].filter(Boolean).join(" · ");
  return el("li", {class: kind},
      el("time", {datetime: new Date(event.at).toISOString()}, clock(event.at)),
      el("div", {}, el("p", {}, event.owner ? el("strong", {}, short(event.owner)) : undefined, ` ${text}`),
          event.note ? el("p", {class: "note"}, event.note) : undefined,
          facts ? el("p", {class: "hint"}, facts) : undefined));
}

export class Lock {
  constructor() {
    this.title = "Lock";
    this.heading = el("h1", {tabindex: "-1", class: "key"}, "…");
    this.facts = el("p", {id: "facts", class: "summary"});
    this.revoke = el("button", {type: "button", id: "revoke", onclick: () => this.askRevoke()},
        "Ask for the lock back");
    this.break =
        el("button", {type: "button", id: "break", class: "danger", onclick: () => this.askBreak()},
            "Break the lock");
    this.rights = el("p", {id: "rights", class: "hint"});
    this.holders = new Table("Holders", kHolders);
    this.waiters = new Table("Queue", kWaiters);
    this.holderBody = el("div", {id: "holders"}, notice("loading", "Reading the lock…"));
    this.waiterBody = el("div", {id: "queue"});
    this.timeline = el("div", {id: "history"});
    this.queueTitle = el("h2", {}, "Queue");
    this.element = el("div", {}, el("p", {}, el("a", {href: "#/locks", id: "back"}, "All locks")),
        this.heading, this.facts, el("div", {class: "buttons start"}, this.revoke, this.break),
        this.rights, el("section", {}, el("h2", {}, "Holders"), this.holderBody),
        el("section", {}, this.queueTitle, this.waiterBody),
        el("section", {}, el("h2", {}, "History"), this.timeline));
  }

  show({db, id}) {
    Object.assign(this, {db, id, lock: undefined});
    this.element.querySelector("#back").setAttribute("href", db ? `#/locks?db=${db}` : "#/locks");
    setText(this.heading, short(decodeURIComponentSafely(id)));
    this.load();
    this.loadHistory();
  }

  onInfo(info) {
    this.info = info;
    this.showButtons();
    if (!document.hidden) this.load();
  }

  // `event` is undefined if the server left some out.
  onChange(event) {
    if (event && (event.db !== this.db || event.key_id !== this.id)) return;
    this.load();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.loadHistory(), kHistoryPauseMs);
  }

  // One request at a time; a change during it means one more after it.
  async load() {
    if (this.loading) return void (this.again = true);
    this.loading = true;
    const {id, db} = this;
    try {
      this.display(await get(`locks/${id}?db=${db}`));
    } catch (error) {
      if (error.status === 404)
        this.display({mode: "free", holders: [], waiters: []});
      else
        this.holderBody.replaceChildren(notice("error", "The lock cannot be shown.", error.message));
    }
    this.loading = false;
    if (this.again) {
      this.again = false;
      this.load();
    }
  }

  display(lock) {
    this.lock = lock;
    const {holders, waiters} = lock;
    if (lock.key !== undefined) setText(this.heading, short(lock.key));
    const kind = lock.mode === "free" ? "not held" : modeText(lock);
    const facts =
        [`Database ${this.db}`, kind, plural(holders.length, "holder"), plural(waiters.length, "waiter")];
    if (lock.delay_ms) facts.push(`lock-delay ends in ${duration(lock.delay_ms)}`);
    setText(this.facts, facts.join(" · "));
    setText(this.queueTitle, waiters.length ? `Queue (${count(waiters.length)})` : "Queue");
    this.fill(this.holderBody, this.holders, holders.map((h) => ({...h, id: String(h.token)})),
        "The lock is free.");
    const seen = new Map();
    const rows = waiters.map((w) => {
      const same = (seen.get(w.owner) ?? 0) + 1;
      seen.set(w.owner, same);
      return {...w, id: `${same} ${w.owner}`};
    });
    this.fill(this.waiterBody, this.waiters, rows, "No client waits for this lock.");
    this.showButtons();
  }

  fill(body, table, rows, empty) {
    table.update(rows);
    if (rows.length && body.firstChild !== table.element) body.replaceChildren(table.element);
    if (!rows.length && body.dataset.empty !== "yes") body.replaceChildren(notice("empty", empty));
    body.dataset.empty = rows.length ? "no" : "yes";
  }

  showButtons() {
    const rights = this.info?.rights ?? {};
    const held = this.lock?.holders.length > 0;
    this.break.disabled = !rights.break || !held;
    this.revoke.disabled = !rights.revoke || !held;
    const missing =
        [rights.break ? "" : "break locks", rights.revoke ? "" : "ask for locks back"].filter(Boolean);
    setText(this.rights,
        this.info && missing.length ?
            `The user ${this.info.user} may not ${
                missing.join(" or ")}. Log in as a user with the right to do it.` :
            "");
  }

  async loadHistory() {
    try {
      const {events} = await get(`history?db=${this.db}&key=${this.id}&count=${kEvents}`);
      const text = JSON.stringify(events);
      if (text === this.historyText) return;
      this.historyText = text;
      const title = `History, newest first; at most ${kEvents} events`;
      this.timeline.replaceChildren(events.length ?
              el("ol", {class: "timeline", "aria-label": title}, ...events.map(eventItem)) :
              notice(
                  "empty", "No events.", "The server keeps events in memory, and has none of this lock."));
    } catch (error) {
      this.historyText = undefined;
      this.timeline.replaceChildren(notice("error", "The history cannot be shown.", error.message));
    }
  }

  holderList() {
    const {holders} = this.lock;
    const items =
        holders.slice(0, kNamedHolders)
            .map((h) => el("li", {}, el("strong", {}, short(h.owner)),
                     `${h.note ? ` (${h.note})` : ""}, token ${h.token}, held for ${duration(h.held_ms)}`));
    if (holders.length > kNamedHolders)
      items.push(el("li", {}, `and ${plural(holders.length - kNamedHolders, "other")}`));
    return el("ul", {}, ...items);
  }

  askBreak() {
    const tokens = tokensOf(this.lock);
    confirmAction({
      question: `Break the lock ${this.heading.textContent}?`,
      label: "Break the lock",
      details: [
        el("p", {}, "This ends the hold of:"), this.holderList(),
        el("p", {},
            "The holder may still work. The next waiter gets the lock at once. " +
                "Only a resource that checks fencing tokens rejects the former holder.")
      ],
      action: () => this.act("break", tokens, "broken"),
    });
  }

  askRevoke() {
    const tokens = tokensOf(this.lock);
    confirmAction({
      question: `Ask for the lock ${this.heading.textContent} back?`,
      label: "Ask for the lock back",
      details: [
        el("p", {}, "This asks for its release:"), this.holderList(),
        el("p", {}, "The hold continues until the holder releases the lock.")
      ],
      action: () => this.act("revoke", tokens, "asked for"),
    });
  }

  // The question named holders: if others hold the lock now, nothing happens.
  async act(verb, tokens, done) {
    const key = this.heading.textContent;
    const now = await get(`locks/${this.id}?db=${this.db}`);
    if (tokensOf(now) !== tokens)
      throw new ApiError(409, "The holders have changed. Cancel, and look again.");
    await post(`locks/${this.id}/${verb}?db=${this.db}`);
    announce(`The lock ${key} was ${done}.`);
    this.onChange();
  }

  close() { clearTimeout(this.timer); }
}

// Until the server tells how it writes the key. The bytes need not be UTF-8.
function decodeURIComponentSafely(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
