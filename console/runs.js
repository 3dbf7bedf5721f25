// The runs of streaming tools, and one of them: what came, what the model was shown, why it ended.

import { get } from "./api.js";
import { ago, badge, bytes, count, crumbs, empty, h, short, stat, took } from "./dom.js";
import { band, curve, rowsChart } from "./charts.js";

const EVERY = 2000;
const KINDS = ["text", "reasoning", "call", "tool", "fresh", "bad"];

export function ended(run) {
  if (run.status === "running") return badge("good", "running");
  if (run.status === "yielded") return badge("call", "PARTIAL · yielded");
  if (run.complete) return badge("good", "COMPLETE");
  const failed = ["upstream_error", "predicate_invalid"].includes(run.reason);
  return badge(failed ? "bad" : "fresh", `PARTIAL · ${(run.reason || "ended").replaceAll("_", " ")}`);
}

const HEAD = [["", ""], ["Tool", ""], ["Handle", "wide"], ["Ending", ""], ["Rows", "num"], ["Took", "num wide"], ["Verdict", "wide"], ["Begun", "num wide"]];

function row(run, at) {
  return h("li", {}, h("a.cols.runs", { href: `#/runs/${run.handle}`, "data-row": at },
    h("i.dot", { class: run.status === "running" ? "busy" : "" }),
    h("b.cut", {}, run.tool), h("span.cut.mono.soft.wide", {}, run.handle), h("span", {}, ended(run)),
    h("span.num", {}, run.status === "running" && !run.rows ? "…" : count(run.rows)), h("span.num.wide", {}, run.elapsed ? took(run.elapsed) : "–"),
    h("span.soft.cut.wide", {}, run.verdict || ""), h("span.num.soft.wide", {}, ago(run.created))));
}

// Read again every two seconds while somebody looks.
function again(signal, read) {
  const timer = setInterval(() => { if (!document.hidden) void read().catch(() => {}); }, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
}

export async function list({ signal }) {
  const body = h("div");
  const said = h("p", { role: "status" });
  async function read() {
    const runs = await get("/runs", signal);
    const focused = document.activeElement?.dataset?.row;
    said.textContent = runs.length ? `${count(runs.length)} run${runs.length === 1 ? "" : "s"} kept, ${runs.filter((run) => run.status !== "ended").length} open` : " ";
    body.replaceChildren(runs.length
      ? h("div.panel.list", {}, h("div.cols.runs.listhead", { "aria-hidden": "true" }, HEAD.map(([words, kind]) => h("span", { class: kind }, words))), h("ul.rows", { "aria-label": "Tool runs" }, runs.map(row)))
      : empty("No streaming tool has run", "Runs of the tools at /mcp appear here while their rows are kept."));
    if (focused !== undefined) body.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }
  await read();
  again(signal, read);
  return { title: "Tool runs", root: h("div", {}, h("div.head", {}, h("div.grow", {}, h("h1", { tabindex: "-1" }, "Tool runs"), said)), body) };
}

const TOLD = { "trajectory.opened": "opened", "chunk.received": "chunk", "synopsis.emitted": "synopsis", "predicate.satisfied": "condition met", "budget.warned": "budget", "decision.requested": "model asked", "decision.made": "model decided", "trajectory.yielded": "yielded", "trajectory.resumed": "resumed", "trajectory.terminated": "ended", "result.returned": "result", "drilldown.called": "drill-down", "handle.expired": "expired", "error.raised": "error" };
const COLOURS = { "synopsis.emitted": "text", "decision.requested": "reasoning", "decision.made": "reasoning", "trajectory.yielded": "call", "trajectory.resumed": "call", "predicate.satisfied": "good", "error.raised": "bad", "budget.warned": "fresh", "trajectory.terminated": "tool" };

function read_(events) {
  const points = [];
  const marks = [];
  const columns = new Map();
  let rows = 0;
  for (const { type, t_ms: ms, data = {} } of events) {
    const at = ms / 1000;
    if (type === "chunk.received") points.push([at, (rows += data.rows || 0)]);
    if (data.columns) rows = Math.max(rows, data.rows || 0);
    if (type === "synopsis.emitted") marks.push({ kind: "shown", at, rows, title: `synopsis at ${count(rows)} rows: ${data.verdict}` });
    if (type === "decision.made") marks.push({ kind: "decided", at, rows, title: `the model decided: ${data.verdict}` });
    if (type === "trajectory.yielded") marks.push({ kind: "held", at, rows, title: `yielded at ${count(rows)} rows` });
    for (const column of data.columns || []) {
      if (!columns.has(column.name)) columns.set(column.name, []);
      columns.get(column.name).push({ rows, ...column });
    }
  }
  return { points, marks, columns, rows, seconds: Math.max(0.001, ...events.map((event) => event.t_ms / 1000)) };
}

function eventList(events) {
  const groups = [];
  for (const event of events) {
    const last = groups.at(-1);
    if (event.type === "chunk.received" && last?.type === event.type) last.more.push(event);
    else groups.push({ type: event.type, event, more: [] });
  }
  const words = ({ type, event: { data = {} }, more }) => {
    if (type === "chunk.received") {
      const all = [data, ...more.map((event) => event.data || {})];
      return `${all.length > 1 ? `${all.length} chunks, ` : ""}${count(all.reduce((sum, one) => sum + (one.rows || 0), 0))} rows, ${bytes(all.reduce((sum, one) => sum + (one.bytes || 0), 0))}`;
    }
    return Object.entries(data).filter(([, value]) => value !== "" && value !== null && typeof value !== "object").map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "number" ? count(value) === String(value) ? value : value.toLocaleString("en-US") : value}`).join(" · ");
  };
  return h("ol.events", {}, groups.map((group) => h("li", {}, h("span.num.soft", {}, took(group.event.t_ms / 1000)), h("span", {}, badge(COLOURS[group.type] || "wait", TOLD[group.type] || group.type)), h("span.cut", { title: words(group) }, words(group)))));
}

function rowsPanel(handle, signal) {
  let offset = 0;
  const table = h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Rows" });
  const where = h("input.field.mono", { placeholder: "where, e.g. user_id = 7", "aria-label": "Only rows where", style: { width: "min(100%, 280px)" } });
  const said = h("span.soft", { role: "status" });
  const [back, on] = [["←", -1, "Earlier rows"], ["→", 1, "Later rows"]].map(([words, by, label]) => h("button.button", { type: "button", "aria-label": label, onclick: () => { offset = Math.max(0, offset + by * 50); void read(); } }, words));
  async function read() {
    try {
      const found = await get(`/runs/${handle}/rows?offset=${offset}&where=${encodeURIComponent(where.value.trim())}`, signal);
      back.disabled = offset === 0;
      on.disabled = !found.more;
      said.textContent = found.rows.length ? `rows ${count(offset + 1)} to ${count(offset + found.rows.length)}` : "no rows";
      table.replaceChildren(h("table.data.mono", {}, h("thead", {}, h("tr", {}, found.columns.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, found.rows.map((one) => h("tr", {}, found.columns.map((name) => h("td.cut", {}, one[name] === null || one[name] === undefined ? "" : String(one[name]))))))));
    } catch (error) {
      if (!signal.aborted) said.textContent = error.message;
    }
  }
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); offset = 0; void read(); }, style: { display: "flex", gap: "8px", "align-items": "center", "flex-wrap": "wrap" } }, said, where, back, on);
  void read();
  return h("section.panel.pad", {}, h("div.rowhead", {}, h("h2", {}, "Rows"), h("div.end", {}, form)), table);
}

function curves(columns) {
  const charts = [];
  let at = 0;
  for (const [name, points] of columns) {
    const kind = KINDS[at++ % KINDS.length];
    const distinct = points.filter((point) => point.distinct !== undefined && point.distinct !== null).map((point) => [point.rows, point.distinct]);
    if (distinct.length) charts.push(h("figure", {}, h("figcaption", {}, h("h3", {}, `distinct ${name}`)), curve(`distinct values of ${name}: ${distinct.at(-1)[1]}`, distinct, kind)));
    const range = points.filter((point) => typeof point.min === "number" && typeof point.max === "number").map((point) => [point.rows, point.min, point.max]);
    if (range.length > 1) charts.push(h("figure", {}, h("figcaption", {}, h("h3", {}, `range of ${name}`)), band(`${name} from ${range.at(-1)[1]} to ${range.at(-1)[2]}`, range, kind)));
  }
  return charts.length ? h("section.panel.pad", {}, h("h2", {}, "What settled"), h("div.grid.two", {}, charts)) : null;
}

export async function one({ parts: [, handle], signal }) {
  const top = h("div");
  let open = true;
  async function read() {
    const { run, mode, unit, arguments: given, snapshot, events, left_out: left, redacted } = await get(`/runs/${handle}`, signal);
    open = run.status !== "ended";
    const seen = read_(events);
    const budget = snapshot.budget ? snapshot.budget.rows_left + (snapshot.rows ?? run.rows) : 0;
    top.replaceChildren(
      crumbs(["Tool runs", "#/runs"], [run.tool]),
      h("div.head", {}, h("div.grow", {}, h("h1", { tabindex: "-1" }, `${run.tool} `, ended(run)), h("p.mono", {}, run.handle, run.call_id ? ` · call ${short(run.call_id)}` : ""))),
      h("dl.panel.stats", {}, stat("Rows", count(run.rows || seen.rows), unit === "row" ? "" : `${unit}s`), stat("Chunks", count(events.filter((event) => event.type === "chunk.received").length), left ? `+ ${left} not shown` : ""),
        stat("Took", took(run.elapsed || seen.seconds)), stat("Kept", bytes(run.bytes)), stat("Verdict", snapshot.verdict || "–"), stat("Budget from", snapshot.budget?.from || "–"), stat("Kept until", new Date(run.expires * 1000).toLocaleTimeString("en-GB").slice(0, 5))),
      h("section.panel.pad", {}, h("div.rowhead", {}, h("h2", {}, "Rows as they came"), h("div.legend", {}, h("span.text", {}, h("i"), "○ synopsis"), h("span.reasoning", {}, h("i"), "◆ decision"), h("span.call", {}, h("i"), "yield"), h("span.bad", {}, h("i"), "budget"))),
        rowsChart(seen.points, { budget, marks: seen.marks, seconds: seen.seconds })),
      curves(seen.columns) || "",
      h("div.grid.two", {},
        h("section.panel.pad", {}, h("h2", {}, "What happened"), h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Events" }, eventList(events))),
        h("section.panel.pad", {}, h("h2", {}, "Asked"), redacted ? h("p.soft", {}, "redacted") : h("dl.pairs", {},
          h("dt", {}, "mode"), h("dd", {}, mode.replaceAll("_", " ") || "–"),
          Object.entries(given).map(([name, value]) => [h("dt", {}, name), h("dd.mono", {}, typeof value === "string" ? value : JSON.stringify(value))]),
          snapshot.predicate ? [h("dt", {}, "consume until"), h("dd.mono", {}, snapshot.predicate.text, snapshot.predicate.satisfied ? ` — met at row ${count(snapshot.predicate.satisfied_at_row)}` : " — not met")] : null,
          (snapshot.notes || []).map((note) => [h("dt", {}, "note"), h("dd", {}, note)])))));
    return { run, redacted };
  }
  const { run, redacted } = await read();
  again(signal, async () => { if (open) await read(); });
  return { title: run.tool, root: h("div.stack", {}, top, redacted ? null : rowsPanel(handle, signal)) };
}
