// The console: which view is shown, what the keys do, and the news that views listen to.

import { follow, get, key, Refused, useKey } from "./api.js";
import { count, empty, h } from "./dom.js";
import * as fleet from "./fleet.js";
import * as play from "./play.js";
import * as runs from "./runs.js";
import * as session from "./session.js";
import * as sessions from "./sessions.js";
import * as turn from "./turn.js";

const VIEWS = {
  sessions: [sessions.view, session.view, turn.view],
  runs: [runs.list, runs.one],
  fleet: [fleet.view],
  play: [play.view],
};
const main = document.getElementById("main");
const news = new EventTarget();
let leaving = new AbortController();

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  if (!VIEWS[parts[0]]) parts.splice(0, parts.length, "sessions");
  return { parts, query: new URLSearchParams(query) };
}

async function show() {
  const { parts, query } = place();
  leaving.abort();
  const mine = (leaving = new AbortController());
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === parts[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const views = VIEWS[parts[0]];
  const view = views[Math.min(parts.length, views.length) - 1];
  main.setAttribute("aria-busy", "true");
  try {
    const { title, root } = await view({ parts, query, signal: mine.signal, news });
    if (mine.signal.aborted) return;
    main.replaceChildren(root);
    document.title = `${title} · treadle`;
    scrollTo(0, 0);
  } catch (error) {
    if (mine.signal.aborted) return;
    main.replaceChildren(error instanceof Refused && [401, 403].includes(error.status) ? closed(error.message) : lost(error));
    document.title = "treadle";
  }
  main.removeAttribute("aria-busy");
  (main.querySelector("h1") || main).focus({ preventScroll: true });
}

function lost(error) {
  const gone = error instanceof Refused && error.status === 404;
  return h("div", {}, h("h1.unseen", { tabindex: "-1" }, "Nothing to show"), empty(gone ? "It is not kept any more" : "The server does not answer", error.message, h("p", { style: { "margin-top": "16px" } }, gone ? h("a.button", { href: "#/sessions" }, "Sessions") : h("button.button", { type: "button", onclick: show }, "Try again"))));
}

function closed(message) {
  const field = h("input.field", { type: "password", "aria-label": "Key", autocomplete: "off", placeholder: "key", style: { "max-width": "320px" } });
  return h("div", {}, h("h1.unseen", { tabindex: "-1" }, "Closed"), empty("This console is not open to you", message,
    h("form", { style: { "margin-top": "16px", display: "flex", gap: "8px", "justify-content": "center" }, onsubmit: (event) => { event.preventDefault(); useKey(field.value.trim()); location.reload(); } }, field, h("button.button.main", {}, "Use this key")),
    key() ? h("p", { style: { "margin-top": "12px" } }, h("button.button", { type: "button", onclick: () => { useKey(""); location.reload(); } }, "Forget the key")) : null));
}

// The light: as the system has it, light, dark.
const THEMES = ["system", "light", "dark"];
function theme(next) {
  const now = THEMES.includes(next) ? next : "system";
  if (now === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
  localStorage.setItem("treadle-theme", now);
  const button = document.getElementById("theme");
  button.setAttribute("aria-label", `Theme: ${now === "system" ? "as the system has it" : now}`);
  button.firstChild.textContent = { system: "◐", light: "☀", dark: "☾" }[now];
}
const turnTheme = () => theme(THEMES[(THEMES.indexOf(localStorage.getItem("treadle-theme")) + 1) % 3] || "light");

const dialog = document.getElementById("keys");

function step(by) {
  const rows = [...main.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const seen = rows.findIndex((row) => row.getBoundingClientRect().top > 92);
  const next = at < 0 ? Math.max(0, seen) : Math.min(rows.length - 1, Math.max(0, at + by));
  rows[next].focus({ preventScroll: true });
  rows[next].scrollIntoView({ block: "nearest" });
}

let prefix = 0;
const KEYS = {
  j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), t: turnTheme, "?": () => dialog.showModal(),
  "/": () => main.querySelector("[data-search]")?.focus(), u: () => main.querySelector("[data-up]")?.click(),
  "[": () => main.querySelector('[data-step="prev"]')?.click(), "]": () => main.querySelector('[data-step="next"]')?.click(),
};
const GO = { s: "sessions", r: "runs", f: "fleet", p: "play" };

addEventListener("keydown", (event) => {
  const writing = event.target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select");
  if (writing && event.key === "Escape") writing.blur();
  if (writing || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.target.closest?.("[type=radio], .scroll, pre") && event.key.startsWith("Arrow")) return;
  const going = performance.now() - prefix < 1500 && GO[event.key];
  prefix = event.key === "g" ? performance.now() : 0;
  if (going) location.hash = `#/${going}`;
  else if (KEYS[event.key] && !(event.key.startsWith("Arrow") && !main.querySelector("[data-row]:focus"))) KEYS[event.key]();
  else return;
  event.preventDefault();
});

const air = document.getElementById("air");
function told(kind, words) {
  air.firstElementChild.className = `dot ${kind}`;
  if (air.lastElementChild.textContent !== words) air.lastElementChild.textContent = words;
}

document.getElementById("theme").addEventListener("click", turnTheme);
document.getElementById("help").addEventListener("click", () => dialog.showModal());
theme(localStorage.getItem("treadle-theme"));
addEventListener("hashchange", show);
void show();
get("/about").then(({ redacted }) => { document.getElementById("redacted").hidden = !redacted; }, () => {});
void follow("turns", {
  hear(event, data) {
    if (event !== "changed") return;
    if (data.live !== null) told(data.live ? "busy" : "on", data.live ? `${count(data.live)} in the air` : "quiet");
    news.dispatchEvent(new CustomEvent("changed", { detail: data }));
  },
  // The server says first what is in the air: a stream that was only cut and came back changes no words.
  state: (state) => { if (state !== "on") told("lost", state === "closed" ? "closed" : "no connection"); },
  signal: new AbortController().signal,
});
