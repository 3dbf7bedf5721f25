// One session: its turns one below the other, and between them what the tools did.

import { get } from "./api.js";
import { badge, brief, clock, count, crumbs, h, harness, percent, short, stat, took } from "./dom.js";
import { blocksOf, legend, strip } from "./strips.js";

const STOPS = { end: ["wait", "answered"], tool_use: ["call", "calls tools"], length: ["fresh", "cut by length"], stop_sequence: ["wait", "stop sequence"], cancelled: ["bad", "cancelled"] };

export function ending(line) {
  if (line.failed) return badge("bad", line.failed.replaceAll("_", " "));
  if (!line.stop) return badge("good", line.doing ? `in the air: ${line.doing === "…" ? "writing" : line.doing}` : "in the air");
  const [kind, words] = STOPS[line.stop] || ["wait", line.stop];
  return badge(kind, words);
}

function turn(line, number, whole) {
  const cached = percent(line.cached || 0, line.input || 0);
  return h("li", {},
    h("a.turn", { href: `#/sessions/${line.session}/${line.turn}`, "data-row": number },
      h("div.when", {}, h("b", {}, `Turn ${number + 1}`), h("span", {}, clock(line.at))),
      h("div", {}, strip(line, whole || line.seconds || 1), blocksOf(line)),
      h("div.facts", {},
        h("span.num", { title: "input tokens, and the share that the cache held" }, `${brief(line.input || 0)} in `, h("small", {}, `${cached} cached`)),
        h("span.num", { title: "output tokens" }, `${brief(line.output || 0)} `, h("small", {}, "out")),
        h("span.num", { title: "time to the first event" }, `${took(line.ttft ?? -1)} `, h("small", {}, "to first")),
        h("div.tags", {}, line.broken ? badge("bad", line.broken.replaceAll("_", " ")) : null, ending(line)))));
}

function gap(line, next, whole, runs) {
  const calls = (line.spans || []).filter((span) => span.kind === "call" && !span.cut);
  if (line.stop !== "tool_use" || !calls.length) return null;
  const waited = next ? next.at - line.at - line.seconds : -1;
  const links = calls.map((call) => runs.get(call.call)).filter(Boolean);
  if (waited < 0 && !links.length) return null;
  const scale = whole || line.seconds || 1;
  const bar = h("div.strip", { "aria-hidden": "true" }, h("i.tool", { style: { left: "0%", width: `${Math.min(100, (100 * Math.max(0, waited)) / scale)}%` } }));
  const words = links.map((run) => h("a", { href: `#/runs/${run.handle}` }, `${run.tool}: ${count(run.rows)} rows, ${(run.reason || run.status).replaceAll("_", " ")}`));
  return h("li", {}, h("div.gap", {}, h("span", {}, waited >= 0 ? `tools ${took(waited)}` : "tools"), bar, h("span.cut", {}, words.length ? words : calls.map((call) => call.tool).join(", "))));
}

export async function view({ parts: [, name], signal, news }) {
  let shared = true;
  let known = null;
  let runs = new Map();
  const weave = h("ol.weave", { "aria-label": "Turns" });
  const top = h("div");
  const scale = h("button.button", { type: "button", "aria-pressed": "true", onclick: () => { shared = !shared; scale.setAttribute("aria-pressed", String(shared)); draw(); } }, "Same scale");
  const root = h("div", {}, top, h("section.panel.list", {}, h("div.rowhead", { style: { padding: "14px 20px 0" } }, h("h2", {}, "Turns"), legend(), h("span.end", {}, scale)), weave));

  function draw() {
    const { session, turns, live } = known;
    const all = [...turns, ...live];
    const whole = shared ? Math.max(0.001, ...all.map((line) => line.seconds || 0)) : 0;
    const missing = (session.turns || 0) - turns.length;
    top.replaceChildren(
      crumbs(["Sessions", "#/sessions"], [session.key || session.session]),
      h("div.head", {}, h("div.grow", {},
        h("h1", { tabindex: "-1" }, harness(session.harness)),
        h("p.mono.cut", {}, session.key || "turns of this client that came without a session key", session.owner ? ` · key ${short(session.owner)}` : ""))),
      h("dl.panel.stats", {},
        stat("Turns", count(session.turns || 0), live.length ? `+ ${live.length} live` : ""),
        stat("Input tokens", brief(session.input || 0)),
        stat("From the cache", percent(session.cached || 0, session.input || 0), `${brief(session.cached || 0)}`),
        stat("Output tokens", brief(session.output || 0)),
        stat("Tool calls", count(session.calls || 0)),
        stat("Prefix breaks", count(session.breaks || 0), "", session.breaks > 0),
        stat("Failed", count(session.failed || 0), "", session.failed > 0),
        stat("Model time", took(session.seconds || 0))));
    const focused = document.activeElement?.dataset?.row;
    weave.replaceChildren(
      missing > 0 ? h("li.gap.soft", {}, "", `${count(missing)} earlier turns are not kept in full`) : "",
      ...all.flatMap((line, at) => [turn(line, at + Math.max(0, missing), whole), gap(line, all[at + 1], whole, runs)].filter(Boolean)));
    if (focused !== undefined) weave.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }
  async function read() {
    [known] = await Promise.all([
      get(`/sessions/${name}`, signal),
      get("/runs", signal).then((found) => { runs = new Map(found.filter((run) => run.call_id).map((run) => [run.call_id, run])); }, () => {}),
    ]);
    draw();
  }
  news.addEventListener("changed", ({ detail }) => {
    if (detail.missed || detail.sessions.includes(name)) void read().catch(() => {});
  }, { signal });
  await read();
  return { title: known.session.key || "Session", root };
}
