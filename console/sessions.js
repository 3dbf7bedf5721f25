// All sessions, latest first. The list is as long as it is; only what is seen is in the page.

import { get } from "./api.js";
import { ago, badge, brief, count, empty, h, harness, meter, percent, share } from "./dom.js";

const ROW = 52;
const PAGE = 100;
const AROUND = 12;

function row(session, at, total) {
  const cached = share(session.cached || 0, session.input || 0);
  const name = session.key || "no session key";
  const busy = session.live > 0;
  return h("li", { "aria-posinset": at + 1, "aria-setsize": total },
    h("a.cols.sessions", { href: `#/sessions/${session.session}`, "data-row": at },
      h("i.dot", { class: busy ? "busy" : "", title: busy ? `${session.live} in the air` : "quiet" }),
      h("div.who", {}, h("b.cut", {}, harness(session.harness)), h("span.cut.mono", { title: name }, name)),
      h("span.cut.soft.wide", { title: session.model }, session.model || ""),
      h("span.num", {}, count(session.turns || 0)),
      h("span.withbar.wide", {}, h("span.num", {}, `${brief(session.input || 0)} · ${percent(session.cached || 0, session.input || 0)}`), meter(cached)),
      h("span.num.wide", {}, brief(session.output || 0)),
      h("span.num.wide", {}, session.calls ? count(session.calls) : "–"),
      h("span.wide", {}, session.failed ? badge("bad", `${session.failed} failed`) : session.breaks ? badge("fresh", `${session.breaks} break${session.breaks > 1 ? "s" : ""}`) : null),
      h("span.num.soft", {}, busy ? badge("good", "live") : ago(session.last))));
}

const HEAD = [["", ""], ["Harness and session", ""], ["Model", "wide"], ["Turns", "num"], ["Input · cached", "num wide"], ["Output", "num wide"], ["Calls", "num wide"], ["Trouble", "wide"], ["Last seen", "num"]];

export function view({ query, signal, news }) {
  let wanted = query.get("q") || "";
  let total = 0;
  let pages = new Map();
  let asked = new Map();
  const said = h("p", { role: "status" }, " ");
  const search = h("input.field", { type: "search", placeholder: "Search harness, session or model   ( / )", "aria-label": "Search sessions", value: wanted, "data-search": "" });
  const list = h("ul.rows", { "aria-label": "Sessions" });
  const panel = h("div.panel.list", { hidden: true }, h("div.cols.sessions.listhead", { "aria-hidden": "true" }, HEAD.map(([words, kind]) => h("span", { class: kind }, words))), list);
  const nothing = h("div");
  const root = h("div", {},
    h("div.head", {}, h("div.grow", {}, h("h1", { tabindex: "-1" }, "Sessions"), said), h("div", { style: { width: "min(100%, 360px)" } }, search)),
    panel, nothing);

  async function page(number, again = false) {
    if (!again && (pages.has(number) || asked.has(number))) return;
    const reading = get(`/sessions?q=${encodeURIComponent(wanted)}&offset=${number * PAGE}&limit=${PAGE}`, signal);
    asked.set(number, reading);
    try {
      const found = await reading;
      if (asked.get(number) !== reading) return;
      pages.set(number, found.sessions);
      total = found.total;
      if (pages.size > 30) pages.delete(pages.keys().next().value);
      said.textContent = total ? `${count(total)} session${total === 1 ? "" : "s"}${wanted ? ` with “${wanted}”` : ""}, ${count(found.live)} turn${found.live === 1 ? "" : "s"} in the air` : " ";
      draw();
    } finally {
      if (asked.get(number) === reading) asked.delete(number);
    }
  }

  let first = -1;
  function window_() {
    const top = list.getBoundingClientRect().top;
    const from = Math.max(0, Math.floor(-top / ROW) - AROUND);
    return [from, Math.min(total, from + Math.ceil(innerHeight / ROW) + 2 * AROUND)];
  }
  function draw() {
    panel.hidden = total === 0;
    nothing.replaceChildren(total || asked.size > 1 ? "" : wanted ? empty("No session matches", `Nothing has “${wanted}” in its harness, key or model.`) : welcome());
    const [from, to] = window_();
    first = from;
    const focused = document.activeElement?.dataset?.row;
    const rows = [];
    for (let at = from; at < to; at += 1) {
      const session = pages.get(Math.floor(at / PAGE))?.[at % PAGE];
      rows.push(session ? row(session, at, total) : h("li.blank", {}, h("span.unseen", {}, "loading")));
    }
    list.style.paddingTop = `${from * ROW}px`;
    list.style.paddingBottom = `${Math.max(0, total - to) * ROW}px`;
    list.replaceChildren(...rows);
    if (focused !== undefined) list.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
    for (let number = Math.floor(from / PAGE); number <= Math.floor(Math.max(from, to - 1) / PAGE); number += 1) void page(number).catch(() => {});
  }
  const scrolled = () => {
    if (Math.abs(window_()[0] - first) > AROUND / 2) draw();
  };
  addEventListener("scroll", scrolled, { signal, passive: true });
  addEventListener("resize", draw, { signal, passive: true });

  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      wanted = search.value.trim();
      history.replaceState(null, "", `#/sessions${wanted ? `?q=${encodeURIComponent(wanted)}` : ""}`);
      [pages, asked, total] = [new Map(), new Map(), 0];
      scrollTo(0, 0);
      void page(0, true).catch(() => {});
    }, 120);
  });
  // What has changed is read again where it is seen; the rest when it is scrolled to.
  news.addEventListener("changed", () => {
    const seen = new Set(window_().map((at) => Math.floor(Math.max(0, at - 1) / PAGE)));
    for (const number of pages.keys()) if (!seen.has(number)) pages.delete(number);
    for (const number of seen) void page(number, true).catch(() => {});
  }, { signal });
  return page(0).then(() => ({ title: "Sessions", root }));
}

function welcome() {
  const base = location.origin;
  return empty("No session yet",
    "Point a harness at this server, or send a turn from the playground.",
    h("pre", { tabindex: "0" }, `ANTHROPIC_BASE_URL=${base} ANTHROPIC_AUTH_TOKEN=none claude`));
}
