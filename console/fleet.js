// The engines and their load, as the router knows it, second by second.

import { follow, get } from "./api.js";
import { brief, count, empty, h, meter, percent, share, stat } from "./dom.js";
import { spark } from "./charts.js";

const KEPT = 60;

function gauge(name, words, part, kind) {
  return h("div.gauge", {}, h("dt", {}, h("span", {}, name), h("b", {}, words)), h("dd", {}, meter(part, kind)));
}

const level = (part) => (part > 0.9 ? "bad" : part > 0.7 ? "fresh" : "cached");

export async function view({ signal }) {
  const past = new Map(); // replica -> its last minute: {at, turns, output}
  const body = h("div");
  function keep(models) {
    const now = performance.now() / 1000;
    for (const { replicas } of models) for (const one of replicas) {
      if (!past.has(one.replica)) past.set(one.replica, []);
      const line = past.get(one.replica);
      line.push({ at: now, turns: one.turns, output: one.output_tokens });
      if (line.length > KEPT) line.shift();
    }
  }
  function speed(name) {
    const line = past.get(name) || [];
    const [first, last] = [line.at(-11) || line[0], line.at(-1)];
    return first && last.at > first.at ? Math.max(0, last.output - first.output) / (last.at - first.at) : 0;
  }
  function engine(one) {
    const busy = one.max_turns ? one.turns / one.max_turns : 0;
    const line = (past.get(one.replica) || []).map((point) => point.turns);
    const stale = one.heard > 5;
    return h("article.panel.engine", {},
      h("div.rowhead", {}, h("i.dot", { class: stale ? "lost" : one.turns ? "busy" : "on" }), h("h3.mono.cut", { title: one.replica, style: { flex: "1" } }, one.replica.split("#").slice(-2).join("#")), h("span.soft", {}, stale ? `silent for ${Math.round(one.heard)} s` : `${brief(speed(one.replica))} tokens/s`)),
      h("dl.gauges", {},
        gauge("Turns", one.max_turns ? `${one.turns} of ${one.max_turns}` : String(one.turns), busy, level(busy)),
        gauge("KV in use", percent(one.kv_used, 1), one.kv_used, level(one.kv_used)),
        gauge("Prompt from cache", percent(one.cached_tokens, one.prompt_tokens), share(one.cached_tokens, one.prompt_tokens), "cached"),
        gauge("Waiting in engine", String(one.waiting), one.max_turns ? one.waiting / one.max_turns : Math.min(1, one.waiting / 8), "fresh")),
      spark(line, Math.max(4, one.max_turns ? Math.min(one.max_turns, 2 * Math.max(...line, 1)) : Math.max(...line, 1)), `turns over the last minute, now ${one.turns}`),
      h("p.soft", {}, `${brief(one.output_tokens)} tokens out, ${brief(one.prompt_tokens)} in`, one.kv_blocks ? `, ${count(one.kv_blocks)} blocks of ${one.block_size}` : ""));
  }
  function model({ model: name, queued, figures, replicas }) {
    const sum = (of) => replicas.reduce((all, one) => all + of(one), 0);
    return h("section", { "aria-label": name, style: { "margin-bottom": "28px" } },
      h("div.rowhead", {}, h("h2", {}, name), h("span.soft", {}, `${replicas.length} engine${replicas.length === 1 ? "" : "s"}`)),
      h("dl.panel.stats", {},
        stat("Turns", count(sum((one) => one.turns))), stat("Queued at the router", count(queued), "", queued > 0),
        stat("Prefill to do", brief(sum((one) => one.prefill)), "tokens"), stat("Tokens a second", brief(sum((one) => speed(one.replica)))),
        stat("Hit rate", percent(sum((one) => one.cached_tokens), sum((one) => one.prompt_tokens))),
        stat("Blocks known", brief(figures.blocks || 0)), stat("Promised kept", percent(figures.kept || 0, figures.promised || 0), figures.promised ? `of ${brief(figures.promised)}` : "")),
      h("div.grid.two", {}, replicas.map(engine)));
  }
  function draw(models) {
    keep(models);
    body.replaceChildren(...(models.length ? models.map(model) : [empty("No engine has reported yet", "Engines appear here as they come up.")]));
  }
  draw(await get("/fleet", signal));
  void follow("fleet", { hear: (event, data) => { if (event === "fleet") draw(data); }, signal });
  return { title: "Fleet", root: h("div", {}, h("div.head", {}, h("div.grow", {}, h("h1", { tabindex: "-1" }, "Fleet"), h("p", {}, "What the router knows of its engines"))), body) };
}
