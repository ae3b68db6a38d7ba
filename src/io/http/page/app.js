// The page: the connection to the server, the login, and which view is shown. The address after # names the
// view:
// #/, #/locks?q=…&db=…&page=…, #/lock/<db>/<key as percent-encoded bytes>.
import {Feed, login} from "./api.js";
import {askLogin} from "./dialogs.js";
import {announce, el, notice, setText} from "./dom.js";
import {clock, duration} from "./format.js";
import {Lock} from "./lock.js";
import {Locks} from "./locks.js";
import {Overview} from "./overview.js";
import {Series} from "./series.js";

const byId = (id) => document.getElementById(id);
const main = byId("main");
const series = new Series();
const state = {
  view: undefined,
  type: undefined,
  info: undefined,
  lostAt: undefined,
  started: false
};

const feed = new Feed({
  open() {
    if (state.lostAt) announce("The connection is back.");
    state.lostAt = undefined;
    byId("banner").hidden = true;
    document.body.classList.remove("stale");
  },
  event(name, data) {
    if (name === "info")
      onInfo(data);
    else if (name === "change")
      state.view?.onChange?.(data);
    else if (name === "dropped")
      state.view?.onChange?.();
  },
  lost(error, retryMs) {
    if (error.status === 401) return needLogin();
    if (error.status && error.status < 500 && !state.info) return refuse(error);
    state.lostAt ??= Date.now();
    setText(byId("banner-text"),
        `Connection lost since ${clock(state.lostAt)}: ${error.message} ` +
            `The next attempt is in ${duration(retryMs)}.`);
    byId("banner").hidden = false;
    document.body.classList.add("stale");
    if (!state.info) main.replaceChildren(notice("loading", "Waiting for the server…"));
  },
});

function onInfo(info) {
  state.info = info;
  series.add(info);
  setText(byId("user"), info.user);
  byId("user").title = "The ACL user of this page";
  showSession();
  const {version, port, uptime_s} = info.server;
  const facts = [`Holdfast ${version}`, port ? `port ${port}` : "", `up ${duration(uptime_s * 1000)}`];
  setText(byId("footer"), facts.filter(Boolean).join(" · "));
  if (!state.view)
    route();
  else
    state.view.onInfo(info);
}

// The views of the address. A view that stays is told its new place, and keeps the focus.
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, db, id] = path.split("/");
  if (name === "locks") return {type: Locks, nav: "locks", query: new URLSearchParams(query)};
  if (name === "lock" && id) return {type: Lock, nav: "locks", db: Number(db) || 0, id};
  return {type: Overview, nav: "overview"};
}

function route() {
  const wanted = place();
  const stays = state.view && state.type === wanted.type;
  const moved = state.started;
  if (!stays) {
    state.view?.close();
    state.type = wanted.type;
    state.view = new wanted.type({
      series,
      go: (hash) => {
        location.hash = hash;
      }
    });
    main.replaceChildren(state.view.element);
  }
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === wanted.nav)
      link.setAttribute("aria-current", "page");
    else
      link.removeAttribute("aria-current");
  }
  state.view.show(wanted);
  state.view.onInfo(state.info);
  document.title = `${state.view.title} – Holdfast`;
  if (moved && (!stays || wanted.type === Lock)) main.querySelector("h1").focus();
  state.started = true;
}

function showSession() {
  const button = byId("session");
  button.hidden = false;
  setText(button, login.get() ? "Log out" : "Log in");
}

function clear() {
  state.view?.close();
  Object.assign(state, {view: undefined, type: undefined, info: undefined});
  setText(byId("user"), "");
  setText(byId("footer"), "");
}

function needLogin() {
  clear();
  login.clear();
  showSession();
  byId("banner").hidden = true;
  document.body.classList.remove("stale");
  const button =
      el("button", {type: "button", class: "primary", id: "login-here", onclick: logIn}, "Log in");
  main.replaceChildren(el("h1", {tabindex: "-1"}, "Log in to see the locks"),
      notice("empty", "This server has a password.", "Use an ACL user of the server, for example default.",
          button));
  document.title = "Log in – Holdfast";
}

// The server answers, but not to this page: no right, or a client that it does not serve.
function refuse(error) {
  const again = el("button", {type: "button", onclick: () => feed.start()}, "Try again");
  main.replaceChildren(
      el("h1", {}, "The server rejects this page"), notice("error", error.message, "", again));
}

async function logIn() {
  if (await askLogin()) restart();
}

function restart() {
  clear();
  main.replaceChildren(notice("loading", "Connecting…"));
  feed.start();
}

byId("session").onclick = () => {
  if (!login.get()) return logIn();
  login.clear();
  restart();
};
byId("retry").onclick = () => feed.start();
byId("skip").onclick = (event) => {  // the address after # belongs to the views
  event.preventDefault();
  main.focus();
};
addEventListener("hashchange", () => {
  if (state.info) route();
});
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
  matchMedia(query).addEventListener("change", () => state.view?.redraw?.());
}
main.replaceChildren(notice("loading", "Connecting…"));
feed.start();
