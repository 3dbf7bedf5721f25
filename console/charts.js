// Small charts in SVG: a step line under a budget, a curve, a band, a spark.

import { brief, h, took } from "./dom.js";

const [WIDE, H, LEFT, RIGHT, TOP, BOTTOM] = [1200, 190, 44, 12, 14, 24];
const HALF = 590; // one of two beside each other: letters are as large in both

function nice(most) {
  const power = 10 ** Math.floor(Math.log10(most || 1));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= most) || most || 1;
}

function frame(label, xs, [low, high], across, W = HALF) {
  const x = (value) => LEFT + ((W - LEFT - RIGHT) * value) / (xs || 1);
  const y = (value) => H - BOTTOM - ((H - TOP - BOTTOM) * (value - low)) / (high - low || 1);
  const svg = h("svg.chart", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
  for (const part of [0, 0.5, 1]) {
    const value = low + part * (high - low);
    svg.append(h("line.grid-line", { x1: LEFT, x2: W - RIGHT, y1: y(value), y2: y(value) }), h("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, figure(value)));
  }
  for (const part of [0, 0.25, 0.5, 0.75, 1]) svg.append(h("text", { x: x(part * xs), y: H - 5, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, across(part * xs)));
  return { svg, x, y };
}

const figure = (value) => (Math.abs(value) >= 1000 ? brief(value) : Number(value.toPrecision(3)).toString());

// Rows over time. `points` are [seconds, rows]; `marks` are {kind, at, rows, title}.
export function rowsChart(points, { budget, marks, seconds }) {
  const last = points.at(-1)?.[1] || 0;
  const shown = budget && budget <= last * 4;
  const most = nice(Math.max(last, shown ? budget : 0, 1));
  const { svg, x, y } = frame(`${brief(last)} rows in ${took(seconds)}${budget ? `, of at most ${brief(budget)}` : ""}`, seconds, [0, most], (value) => (value ? took(value) : "0"), WIDE);
  let path = `M${x(0)} ${y(0)}`;
  let before = 0;
  for (const [at, rows] of points) {
    path += `L${x(at).toFixed(1)} ${y(before).toFixed(1)}L${x(at).toFixed(1)} ${y(rows).toFixed(1)}`;
    before = rows;
  }
  path += `L${x(seconds)} ${y(before)}`;
  svg.append(h("path.area", { d: `${path}L${x(seconds)} ${y(0)}Z` }), h("path.line", { d: path }));
  if (shown) svg.append(h("line.budget", { x1: LEFT, x2: WIDE - RIGHT, y1: y(budget), y2: y(budget) }), h("text.budget-word", { x: WIDE - RIGHT, y: y(budget) - 5, "text-anchor": "end" }, `budget ${brief(budget)} rows`));
  for (const mark of marks) {
    if (mark.kind === "held") svg.append(h("line.held", { x1: x(mark.at), x2: x(mark.at), y1: TOP, y2: H - BOTTOM }, h("title", {}, mark.title)));
    else if (mark.kind === "decided") svg.append(h("path.decided", { d: `M${x(mark.at)} ${y(mark.rows) - 7}l6 7l-6 7l-6 -7z` }, h("title", {}, mark.title)));
    else svg.append(h("circle.point", { cx: x(mark.at), cy: y(mark.rows), r: 3.5 }, h("title", {}, mark.title)));
  }
  return svg;
}

// A column over the rows read: `points` are [rows, value].
export function curve(label, points, kind) {
  const rows = Math.max(1, ...points.map(([at]) => at));
  const { svg, x, y } = frame(label, rows, [0, nice(Math.max(1, ...points.map(([, value]) => value)))], brief);
  const path = [[0, 0], ...points].map(([at, value], n) => `${n ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  svg.classList.add(kind);
  svg.append(h("path.line", { d: path }));
  for (const [at, value] of points.length <= 40 ? points : points.slice(-1)) svg.append(h("circle.point", { cx: x(at), cy: y(value), r: 3 }, h("title", {}, `${brief(at)} rows: ${figure(value)}`)));
  return svg;
}

// From least to most, as it widened: `points` are [rows, low, high].
export function band(label, points, kind) {
  const rows = Math.max(1, ...points.map(([at]) => at));
  const low = Math.min(...points.map(([, least]) => least));
  const high = Math.max(...points.map(([, , most]) => most));
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  const { svg, x, y } = frame(label, rows, [low < 0 ? low - room : Math.max(0, low - room), high + room], brief);
  const line = (which) => points.map((point, n) => `${n ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[which]).toFixed(1)}`).join("");
  const back = [...points].reverse().map((point) => `L${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join("");
  svg.classList.add(kind);
  svg.append(h("path.area", { d: `${line(2)}${back}Z` }), h("path.line", { d: line(1) }), h("path.line", { d: line(2) }));
  return svg;
}

export function spark(values, most, label) {
  const svg = h("svg.spark", { viewBox: "0 0 100 36", preserveAspectRatio: "none", role: "img", "aria-label": label });
  if (values.length < 2) return svg;
  const step = 100 / (Math.max(values.length, 30) - 1);
  const start = 100 - step * (values.length - 1);
  const path = values.map((value, n) => `${n ? "L" : "M"}${(start + n * step).toFixed(2)} ${(33 - (30 * value) / (most || 1)).toFixed(2)}`).join("");
  svg.append(h("path", { d: `${path}L100 36L${start} 36Z`, fill: "var(--text)", opacity: "0.12" }), h("path", { d: path, fill: "none", stroke: "var(--text)", "stroke-width": "1.5" }));
  return svg;
}
