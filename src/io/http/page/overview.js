// The overview: is the server ready, and what do the locks do; figures of now, and charts of 15 minutes.
import {get} from "./api.js";
import {LineChart} from "./charts.js";
import {el, notice, setText, Table} from "./dom.js";
import {bytes, count, duration, plural, rate} from "./format.js";
import {kWaitWindowMs} from "./series.js";

const kBusiest = 5;
const kChecks = {
  loading: "Data is loaded",
  recovering: "No recovery wait",
  journal: "Journal is written",
  snapshot: "Snapshots succeed",
  memory: "Memory is below its limit",
  clients: "Connections are available",
};

const total = (locks) => locks.exclusive + locks.shared + locks.semaphore;
const wait = (ms) => ms === null ? "none" : duration(ms);
const milliseconds = (ms) => duration(ms);

// The cards: figures are [name, label, text(info, sample)], and the chart of the card.
const kCards = [
  ["Grants a second", [["grant-rate", "all", (i, s) => s.grantRate === null ? "…" : rate(s.grantRate)],
    ["queued-rate", "after a wait", (i, s) => s.queuedRate === null ? "…" : rate(s.queuedRate)],
    ["grants", "since the start", (i) => count(i.grants_total)]],
  [{ label: "all", color: "--a", value: (s) => s.grantRate },
    { label: "after a wait", color: "--b", value: (s) => s.queuedRate }], rate],
  ["Time to get a lock", [["p50", "half wait less than", (i, s) => wait(s.p50)],
    ["p99", "99 % wait less than", (i, s) => wait(s.p99)]],
  [{ label: "p50", color: "--a", value: (s) => s.p50 },
    { label: "p99", color: "--b", value: (s) => s.p99 }],
  milliseconds],
  ["Locks held", [["locks", "all", (i) => count(total(i.locks))],
    ["exclusive", "exclusive", (i) => count(i.locks.exclusive)],
    ["shared", "shared", (i) => count(i.locks.shared)],
    ["semaphore", "semaphore", (i) => count(i.locks.semaphore)]],
  [{ label: "exclusive", color: "--a", value: (s) => s.locks.exclusive },
    { label: "shared", color: "--b", value: (s) => s.locks.shared },
    { label: "semaphore", color: "--c", value: (s) => s.locks.semaphore }], count, true],
  ["Waiters", [["waiters", "now", (i) => count(i.waiters)],
    ["oldest", "oldest waits", (i) => i.waiters ? duration(i.oldest_waiter_ms) : "none"],
    ["longest-queue", "longest queue", (i) => count(i.longest_queue)]],
  [{ label: "waiters", color: "--a", value: (s) => s.waiters }], count],
  ["Memory", [["memory", "used", (i) => bytes(i.memory_bytes)],
    ["memory-limit", "limit", (i) => i.memory_limit_bytes ? bytes(i.memory_limit_bytes) : "none"]],
  [{ label: "used", color: "--a", value: (s) => s.memory }], bytes],
  ["Clients", [["clients", "connected", (i) => count(i.connected_clients)],
    ["max-clients", "limit", (i) => count(i.max_clients)]],
  [{ label: "clients", color: "--a", value: (s) => s.clients }], count],
];

function card([title, figures, lines, format, stacked]) {
  const chart = new LineChart(title, lines, format, stacked);
  const values = figures.map(
      ([name, label, text]) => ({text, label, value: el("dd", {id: `figure-${name}`}, "…")}));
  const list = el("dl", {}, ...values.map((v) => el("div", {}, el("dt", {}, v.label), v.value)));
  const element = el("section", {class: "card"}, el("h2", {}, title), list, chart.element, chart.legend);
  const update = (info, samples) => {
    for (const v of values) setText(v.value, v.text(info, samples[samples.length - 1]));
    chart.update(samples);
  };
  return {element, update, chart};
}

export class Overview {
  constructor({series}) {
    this.series = series;
    this.title = "Overview";
    this.cards = kCards.map(card);
    this.state = el("p", {id: "ready", class: "state"}, "…");
    this.checks = el("ul", {class: "checks", "aria-label": "Readiness checks"});
    this.busiest = new Table("Locks with the most waiters", [
      {
        label: "Lock",
        class: "key",
        cell: (row) => ({text: row.key, href: `#/lock/${row.db}/${row.key_id}`})
      },
      {label: "Database", cell: (row) => row.db},
      {label: "Waiters", class: "number", cell: (row) => count(row.waiters)},
      {label: "Longest wait so far", class: "number", cell: (row) => duration(row.max_wait_ms)},
    ]);
    this.quiet = notice("empty", "No client waits for a lock.");
    this.queues = el("div");
    this.element = el("div", {}, el("h1", {tabindex: "-1"}, "Overview"),
        el("section", {class: "card readiness", "aria-label": "Readiness"}, this.state, this.checks),
        el("div", {class: "cards"}, ...this.cards.map((c) => c.element)),
        el("p", {class: "hint"},
            `Charts begin when this page opens, and show 15 minutes. Waits are those of the last ${
                duration(kWaitWindowMs)}.`),
        el("section", {}, el("h2", {}, "Longest queues"), this.queues));
  }

  show() {
    if (this.info) this.onInfo(this.info);
  }

  onInfo(info) {
    this.info = info;
    const failed = info.checks.filter((c) => !c.ok);
    setText(this.state,
        info.ready ? "Ready" : `Not ready: ${plural(failed.length, "check fails", "checks fail")}`);
    this.state.classList.toggle("bad", !info.ready);
    this.showChecks(info.checks);
    for (const c of this.cards) c.update(info, this.series.samples);
    if (!this.loading) this.loadBusiest(info.waiters);
  }

  showChecks(checks) {
    const items = checks.map((c) => {
      const text = c.ok ? kChecks[c.name] ?? c.name : `${c.name}: ${c.why}`;
      return [c.ok ? "ok" : "bad", `${c.ok ? "✓" : "✗"} ${text}`];
    });
    if (JSON.stringify(items) === this.checksText) return;
    this.checksText = JSON.stringify(items);
    this.checks.replaceChildren(...items.map(([kind, text]) => el("li", {class: kind}, text)));
  }

  async loadBusiest(waiters) {
    if (!waiters) return this.queues.replaceChildren(this.quiet);
    this.loading = true;
    try {
      const {keys} = await get(`top?by=waiters&count=${kBusiest}`);
      const rows = keys.filter((k) => k.waiters).map((k) => ({...k, id: `${k.db} ${k.key_id}`}));
      this.busiest.update(rows);
      const shown = rows.length ? this.busiest.element : this.quiet;
      if (this.queues.firstChild !== shown) this.queues.replaceChildren(shown);
    } catch (error) {
      this.queues.replaceChildren(notice("error", "The queues cannot be shown.", error.message));
    } finally {
      this.loading = false;
    }
  }

  redraw() {
    for (const c of this.cards) c.chart.close();
    this.show();
  }

  close() {
    for (const c of this.cards) c.chart.close();
  }
}
