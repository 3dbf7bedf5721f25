// A turn as a strip of blocks in their times, and a prompt as a strip of blocks in their tokens.

import { count, h, took } from "./dom.js";

export const NAMES = { reasoning: "reasoning", text: "text", call: "call" };

export function legend() {
  const parts = [["wait", "waiting"], ["reasoning", "reasoning"], ["text", "text"], ["call", "call, dispatched at its tip"], ["tool", "tools run"]];
  return h("div.legend", {}, parts.map(([kind, words]) => h("span", { class: kind }, h("i"), words)));
}

const at = (from, to, whole) => ({ left: `${(100 * from) / whole}%`, width: `${(100 * Math.max(0, to - from)) / whole}%` });

const named = (span) => (span.kind === "call" ? `call ${span.tool || ""}`.trim() : span.kind);

export function spoken(line) {
  const blocks = (line.spans || []).map((span) => `${named(span)} ${took(span.end - span.start)}`);
  const waited = (line.ttft ?? -1) >= 0 ? [`first event after ${took(line.ttft)}`] : [];
  return `${[...waited, ...blocks].join(", ") || "nothing yet"}; ${took(line.seconds || 0)} in all`;
}

// `whole` is how many seconds the full width stands for.
export function strip(line, whole, big = false) {
  const ttft = line.ttft ?? -1;
  const seconds = line.seconds || 0;
  const until = ttft >= 0 ? ttft : seconds;
  const routed = Math.min(line.routed || 0, until);
  const made = h("div.strip", { role: "img", "aria-label": spoken(line), class: big ? "big" : "" });
  const put = (kind, from, to, title) => made.append(h(`i.${kind}`, { style: at(from, to, whole), title }));
  if (routed > 0) put("route", 0, routed, `a replica chosen after ${took(routed)}`);
  if (until > routed) put("wait", routed, until, `first event after ${took(until)}`);
  let last = until;
  for (const span of line.spans || []) {
    const lead = span.kind === "call" && !span.cut ? `, dispatched ${took(Math.max(0, seconds - span.end))} before the turn's end` : "";
    put(span.cut ? "bad" : span.kind, span.start, span.end, `${named(span)} ${took(span.end - span.start)}, ${count(span.size || 0)} characters${lead}${span.cut ? `, cut: ${span.cut}` : ""}`);
    last = Math.max(last, span.end);
  }
  if (!line.stop && !line.failed && seconds > last && ttft >= 0) put("now", last, seconds, line.doing || "going on");
  if (line.failed) put("bad", Math.max(0, seconds - whole / 150), seconds, `failed: ${line.failed}`);
  return made;
}

export function blocksOf(line) {
  const spans = line.spans || [];
  const shown = spans.slice(0, 12).map((span) => h("span", { class: span.cut ? "bad" : span.kind }, h("i"), span.kind === "call" ? span.tool || "call" : span.kind));
  return h("div.blocks", { "aria-hidden": "true" }, shown, spans.length > 12 ? `+${spans.length - 12}` : null);
}

export function axis(seconds) {
  const steps = [0, 0.25, 0.5, 0.75, 1];
  return h("div.axis", { "aria-hidden": "true" }, steps.map((step) => h("span", { style: { left: `${100 * step}%` } }, step ? took(step * seconds) : "0")));
}

// How much of a prompt block the cache held: "cached", "fresh", or the share of it that was.
export function held(part, cached) {
  if ((part.end || 0) <= cached) return 1;
  return (part.start || 0) >= cached ? 0 : (cached - part.start) / (part.end - part.start);
}

export function promptStrip(parts, cached, total, broken) {
  const says = `${count(cached)} of ${count(total)} tokens came from the cache, in ${parts.length} blocks`;
  const row = h("div.parts", { role: "img", "aria-label": says });
  const first = parts.length ? parts[0].start || 0 : 0;
  if (first) row.append(h("i", { class: cached >= first ? "cached" : "fresh", style: { "flex-grow": first, "flex-basis": 0 }, title: `${count(first)} tokens before` }));
  for (const part of parts) {
    const from = part.start || 0;
    const kept = held(part, cached);
    const kind = kept === 1 ? "cached" : kept === 0 ? "fresh" : "mixed";
    row.append(h("i", { class: kind, style: { "flex-grow": part.end - from, "flex-basis": 0, "--share": `${100 * kept}%` }, title: `${part.role}: tokens ${count(from)} to ${count(part.end)}, ${Math.round(100 * kept)}% cached` }));
  }
  const box = h("div.mapbox", {}, row);
  if (broken && broken.token >= 0 && total) box.append(h("span.mark-at", { style: { left: `${(100 * broken.token) / total}%` }, title: `the prefix breaks at token ${count(broken.token)}` }));
  return box;
}
