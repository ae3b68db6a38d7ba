// The table of locks: search, database, pages. The keys come from KeyList; what a row shows comes from the
// key itself (LOCKS INFO), so it is as of now.
import {get} from "./api.js";
import {announce, el, notice, setText, Table} from "./dom.js";
import {count, duration, plural, timeLeft} from "./format.js";
import {KeyList} from "./key_list.js";

const kRows = 25;
const kDatabases = 16;
const kListEvery = 5;  // `info` events (seconds) between two readings of the order without a change
const kChangePauseMs = 400;

export function locksLink({q = "", db = 0, page = 1}) {
  const query = new URLSearchParams();
  if (q) query.set("q", q);
  if (db) query.set("db", db);
  if (page > 1) query.set("page", page);
  return `#/locks${query.size ? `?${query}` : ""}`;
}

// LOCKS INFO of each row of the page, and how long its newest hold is held. A key that was released
// meanwhile has no holder. A key that is too long for a request has its reason in place of the holder.
async function details(row, db) {
  try {
    const info = await get(`locks/${row.key_id}?db=${db}`);
    const holders = info.holders ?? [];
    return {...info, id: row.key_id, db, holders, waiters: info.waiters ?? [], first: holders[0]};
  } catch (error) {
    if (error.status === 414)
      return {...row, id: row.key_id, db, holders: [], waiters: {length: row.waiters}, why: error.message};
    if (error.status !== 404) throw error;
    return {
      key: row.key,
      key_id: row.key_id,
      id: row.key_id,
      db,
      mode: "free",
      holders: [],
      waiters: []
    };
  }
}

function holderText({first, holders, why}) {
  if (!first) return why ?? "free";
  return holders.length > 1 ? `${first.owner} and ${plural(holders.length - 1, "other")}` : first.owner;
}

const kColumns = [
  {label: "Lock", class: "key", cell: (r) => ({text: r.key, href: `#/lock/${r.db}/${r.key_id}`})},
  {label: "Holder", class: "key", cell: holderText},
  {label: "Note", class: "note", cell: (r) => r.first?.note ?? ""},
  {label: "Mode", cell: (r) => r.mode === "limit" ? `semaphore of ${r.limit}` : r.mode},
  {label: "Age", class: "number", cell: (r) => r.first ? duration(r.first.held_ms) : ""},
  {label: "Time left", class: "number", cell: (r) => r.first ? timeLeft(r.first.ttl_ms) : ""},
  {label: "Waiters", class: "number", cell: (r) => count(r.waiters.length)},
];

export class Locks {
  constructor({go}) {
    this.go = go;
    this.title = "Locks";
    this.ticks = 0;
    this.search = el("input", {
      type: "search",
      id: "search",
      name: "q",
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": "search-hint"
    });
    this.database = el("select", {id: "database", onchange: () => this.submit()},
        ...Array.from({length: kDatabases}, (_, i) => el("option", {value: i}, String(i))));
    this.table = new Table("Locks", kColumns);
    this.summary = el("p", {id: "summary", class: "summary"});
    this.previous = el("button", {type: "button", onclick: () => this.turn(-1)}, "Previous");
    this.next = el("button", {type: "button", onclick: () => this.turn(1)}, "Next");
    this.pages =
        el("nav", {class: "pages", "aria-label": "Pages"}, this.previous, this.summary, this.next);
    this.body = el("div", {id: "locks"});
    this.element = el("div", {}, el("h1", {tabindex: "-1"}, "Locks"), this.form(), this.body, this.pages);
  }

  form() {
    const submit = (event) => {
      event.preventDefault();
      this.submit();
    };
    return el("form", {role: "search", class: "search", onsubmit: submit},
        el("div", {class: "grow"},
            el("label",
                { for: "search"
                },
                "Search keys"),
            this.search,
            el("span", {id: "search-hint", class: "hint"},
                "A part of the key, or a pattern with * ? [ ]")),
        el("div", {}, el("label", { for: "database"
        }, "Database"), this.database), el("button", {type: "submit", class: "primary"}, "Search"));
  }

  submit() { this.go(locksLink({q: this.search.value, db: Number(this.database.value)})); }

  turn(step) { this.go(locksLink({...this.place, page: this.place.page + step})); }

  show({query}) {
    this.place = {
      q: query.get("q") ?? "",
      db: Number(query.get("db") ?? 0),
      page: Number(query.get("page") ?? 1)
    };
    this.search.value = this.place.q;
    this.database.value = this.place.db;
    this.list = undefined;
    this.body.replaceChildren(notice("loading", "Reading the locks…"));
    this.pages.hidden = true;
    this.load(true);
  }

  // A new waiter is no event of LOCKS HISTORY, but changes the number of waiters.
  onInfo(info) {
    this.ticks++;
    if (info.waiters !== this.waiters) this.changed = true;
    this.waiters = info.waiters;
    this.refresh(this.ticks % kListEvery === 0);
  }

  // `event` is undefined if the server left some out.
  onChange(event) {
    if (event && event.db !== this.place?.db) return;
    this.changed = true;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (this.changed) this.refresh(true);
    }, kChangePauseMs);
  }

  refresh(anew) {
    if (document.hidden || !this.place || this.loading === this.place) return;
    this.load(anew || this.changed || !this.list);
  }

  // Reads the rows of this page, and before that the order of the keys if `anew`. A newer call, or another
  // page, makes an older one worthless.
  async load(anew) {
    const place = this.loading = this.place;
    const first = (place.page - 1) * kRows;
    if (anew) this.changed = false;
    try {
      const list = anew || !this.list ? new KeyList(place.db, place.q) : this.list;
      await list.more(first + kRows + 1);
      const rows =
          await Promise.all(list.rows.slice(first, first + kRows).map((row) => details(row, place.db)));
      if (place !== this.place) return;
      this.list = list;
      this.showRows(rows, first, list);
    } catch (error) {
      if (place === this.place) this.fail(error);
    } finally {
      if (this.loading === place) this.loading = undefined;
    }
  }

  showRows(rows, first, list) {
    this.table.update(rows);
    const shown = rows.length ? this.table.element : this.nothing(list);
    if (this.body.firstChild !== shown) this.body.replaceChildren(shown);
    const known = `${count(list.keys.size)}${list.done ? "" : " or more"}`;
    const text = rows.length ? `${count(first + 1)} to ${count(first + rows.length)} of ${known}` : "";
    const newPlace = this.announced !== this.place;
    setText(this.summary, text);
    this.pages.hidden = !rows.length && this.place.page === 1;
    this.previous.disabled = this.place.page <= 1;
    this.next.disabled = list.done && first + kRows >= list.keys.size;
    if (!newPlace) return;
    this.announced = this.place;
    announce(rows.length ? `Locks ${text}` : "No lock found");
  }

  nothing(list) {
    const {q, db} = this.place;
    if (!list.done) {
      const go = el("button", {type: "button", onclick: () => this.load(false)}, "Search more keys");
      return notice(
          "empty", "Nothing found so far.", "The server has more keys than one search reads.", go);
    }
    if (q) return notice("empty", "No lock matches.", `No held key of database ${db} matches ${q}.`);
    return notice("empty", "No locks are held.", `Database ${db} has no lock at present.`);
  }

  fail(error) {
    const again = el("button", {type: "button", onclick: () => this.load(true)}, "Try again");
    this.body.replaceChildren(notice("error", "The locks cannot be shown.", error.message, again));
    this.pages.hidden = true;
  }

  close() {
    clearTimeout(this.timer);
    this.place = undefined;
  }
}
