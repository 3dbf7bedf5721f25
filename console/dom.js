// Elements and words. Whatever came from outside becomes a text node: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "path", "line", "circle", "rect", "g", "text", "polyline", "polygon", "title"]);

// h("a.button", {href: "#", style: {width: "3%"}, onclick: f}, "text", child, [more], null)
export function h(name, given = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  if (classes.length) made.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "style") for (const [rule, to] of Object.entries(value)) made.style.setProperty(rule, to);
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.setAttribute("class", [...classes, value].join(" "));
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const count = (n) => Math.round(n).toLocaleString("en-US");

// Tokens and the like: 940, 12.4k, 3.1M.
export function brief(n) {
  if (n < 1000) return String(Math.round(n));
  if (n < 999_500) return `${(n / 1000).toFixed(n < 99_950 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(n < 99.5e6 ? 1 : 0)}M`;
}

export function took(seconds) {
  if (seconds < 0) return "–";
  if (seconds < 0.9995) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 59.5) return `${seconds.toFixed(seconds < 9.995 ? 2 : 1)} s`;
  if (seconds < 3570) return `${Math.floor(seconds / 60)} m ${String(Math.round(seconds % 60)).padStart(2, "0")} s`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export function ago(at, now = Date.now() / 1000) {
  const passed = Math.max(0, now - at);
  if (passed < 2) return "now";
  if (passed < 60) return `${Math.round(passed)} s ago`;
  if (passed < 3600) return `${Math.round(passed / 60)} m ago`;
  return passed < 86400 ? `${Math.round(passed / 3600)} h ago` : `${Math.round(passed / 86400)} d ago`;
}

export const clock = (at) => new Date(at * 1000).toLocaleTimeString("en-GB");
export const share = (part, whole) => (whole > 0 ? part / whole : 0);
export const percent = (part, whole) => (whole > 0 ? `${Math.round(100 * share(part, whole))}%` : "–");
export const bytes = (n) => (n < 1024 ? `${n} B` : n < 1048576 ? `${(n / 1024).toFixed(1)} KB` : `${(n / 1048576).toFixed(1)} MB`);

const HARNESSES = [
  [/claude-cli\/([\d.]+)/i, "Claude Code"], [/codex[\w-]*\/([\d.]+)/i, "Codex"], [/opencode\/([\d.]+)/i, "OpenCode"],
  [/openclaw\/([\d.]+)/i, "OpenClaw"], [/qwen\w*\/([\d.]+)/i, "Qwen Code"], [/Anthropic\/(\w+)/, "Anthropic SDK"],
  [/OpenAI\/(\w+)/, "OpenAI SDK"], [/treadle-decision/, "decision round"], [/Mozilla\//, "browser"], [/^([\w.-]+)\/([\d.]+)/, ""],
];

// A user agent as people call the program.
export function harness(agent) {
  for (const [pattern, name] of HARNESSES) {
    const found = pattern.exec(agent || "");
    if (found) return name ? [name, found[1] || ""].join(" ").trim() : `${found[1]} ${found[2]}`;
  }
  return agent || "unknown client";
}

export const short = (id) => (id.length > 14 ? `${id.slice(0, 10)}…` : id);

export function stat(name, value, more = "", bad = false) {
  return h("div", {}, h("dt", {}, name), h("dd", { class: bad ? "bad" : "" }, value, more ? h("small", {}, ` ${more}`) : null));
}

export const badge = (kind, ...words) => h(`span.badge.${kind}`, {}, ...words);

export function meter(part, kind = "cached") {
  return h("div.meter", { class: kind, "aria-hidden": "true" }, h("i", { style: { width: `${Math.min(100, 100 * part)}%` } }));
}

export function empty(title, ...more) {
  return h("div.panel.empty", {}, h("strong", {}, title), ...more);
}

export function crumbs(...steps) {
  return h("nav.crumbs", { "aria-label": "Where this belongs" }, steps.flatMap(([words, href], at) => [
    at ? h("span", { "aria-hidden": "true" }, "/") : null,
    href ? h("a", { href, "data-up": at === steps.length - 2 ? "" : null }, words) : h("span", {}, words),
  ]));
}
