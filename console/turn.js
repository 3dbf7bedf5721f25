// One turn: its times, what was answered, and its prompt with what the cache held of it.

import { get } from "./api.js";
import { badge, clock, count, crumbs, h, harness, percent, stat, took } from "./dom.js";
import { ending } from "./session.js";
import { axis, held, legend, promptStrip, strip } from "./strips.js";

// What the prefix doctor's causes mean, and what can be done.
const CAUSES = {
  billing_header: "a billing header changed inside the prompt; it is taken out unless strip_billing_header is off",
  date_line: "a date or time stands in the prompt and moved on",
  identifier: "an identifier that differs from session to session stands in the prompt",
  reordered_tools: "the same tools came in another order",
  changed_tools: "the tools are not those of the turn before",
  changed_system: "the system prompt is not that of the turn before",
  changed_thinking: "the thinking setting changed, and the template writes it into the prompt",
  edited_message: "a message of the history was changed or taken out",
  edited_reply: "the harness sent a reply back that the model did not write so",
  mutated_reasoning: "reasoning came back changed",
  lost_reasoning: "the harness did not send the reasoning back",
  dropped_reasoning: "the model's template drops earlier reasoning",
  retokenised_reply: "a reply was rendered anew instead of replayed token for token",
  unknown: "the doctor cannot name what changed",
};

// The two texts without what they share at both ends, that part marked.
function differing(before, after) {
  let start = 0;
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return [before, after].map((text) => [text.slice(0, start), h("mark", {}, text.slice(start, text.length - end) || "∅"), text.slice(text.length - end)]);
}

function broken(found, total) {
  if (!found) return null;
  const [before, after] = differing(found.before, found.after);
  const where = found.where ? [" in ", h("code", {}, found.where)] : [];
  const cost = found.token >= 0 ? `The first ${count(found.token)} of ${count(total)} tokens are those of the turn before; ${count(found.lost)} that the cache had were computed again.` : "Too little of the turn before is kept to say where.";
  return h("section.callout", { "aria-label": "Why the prefix broke" },
    h("h3", {}, `The prefix broke: ${found.cause.replaceAll("_", " ")}`, ...where),
    h("p", {}, `${CAUSES[found.cause] || CAUSES.unknown}. ${cost}`.replace(/^./, (c) => c.toUpperCase())),
    found.before || found.after ? h("div.diff", {}, h("div", {}, h("span", {}, "the turn before"), h("pre", {}, before)), h("div", {}, h("span", {}, "this turn"), h("pre", {}, after))) : null);
}

function block(kind, role, facts, text, open, hint = "") {
  // the opening of a message says what its role says already, and markers say less than words
  const said = text.replace(/^\s*<[^<>\s]{1,40}>\w*\s*\n?/, "").split("\n");
  const first = hint || (said.map((one) => one.replace(/<[^<>\s]{1,40}>/g, "").trim()).find(Boolean) || said[0].trim()).slice(0, 200);
  return h("details.block", { class: kind, open },
    h("summary", {}, h("span.role", {}, role), h("span.say.cut", {}, first), ...facts),
    text ? h("pre", { tabindex: "0" }, text) : null);
}

function reply(view) {
  const spans = view.line.spans || [];
  const blocks = view.reply || spans.map((span) => ({ kind: span.kind, tool: span.tool, cut: span.cut, text: "" }));
  if (!blocks.length) return h("p.soft", {}, view.line.failed ? "The turn failed before it said anything." : "Nothing was said.");
  let at = 0; // what a tool that the server ran gave back has no span of its own
  return h("div", {}, blocks.map((one) => {
    const span = one.kind === "answer" ? null : spans[at++];
    const facts = [
      one.cut ? badge("bad", `cut: ${one.cut}`) : null,
      span ? h("span.num", {}, `${count(span.size || 0)} chars`) : null,
      span ? h("span.num", { title: "from when to when" }, `${took(span.start)} – ${took(span.end)}`) : null,
    ];
    let text = one.text || "";
    if (one.kind === "call" && text) try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* a cut call: as it came */ }
    if (one.more) text += `\n… ${count(one.more)} characters more`;
    return block(one.cut ? "bad" : one.kind === "answer" ? "tool" : one.kind, one.kind === "call" ? one.tool || "call" : one.kind, facts, text, !["reasoning", "answer"].includes(one.kind), view.redacted ? "redacted" : "");
  }));
}

function prompt(view) {
  const { line, detail } = view;
  const [cached, total] = [line.cached || 0, line.input || 0];
  const parts = detail?.parts || [];
  const head = h("div.rowhead", {}, h("h2", {}, "Prompt"),
    h("div.legend", {}, h("span.cached", {}, h("i"), `from the cache: ${count(cached)}`), h("span.fresh", {}, h("i"), `computed: ${count(total - cached)}`)));
  if (!parts.length) return h("section.panel.pad", {}, head, broken(detail?.broken, total), h("p.soft", {}, line.stop ? "The blocks of this prompt are not kept any more." : "The blocks are shown when the turn is over."));
  const rows = parts.map((part) => {
    const kept = held(part, cached);
    const [kind, words] = kept === 1 ? ["cached", "cached"] : kept === 0 ? ["fresh", "new"] : ["fresh", `${Math.round(100 * kept)}% cached`];
    const facts = [badge(kind, words), h("span.num", {}, `${count(part.end - (part.start || 0))} tokens`)];
    return block(kind, part.role, facts, part.text || "", false, view.redacted ? "redacted" : "");
  });
  return h("section.panel.pad", {}, head, promptStrip(parts, cached, total, detail.broken), broken(detail.broken, total),
    detail.left_out ? h("p.soft", {}, `${count(detail.left_out)} tokens stand before these blocks.`) : null, h("div", {}, rows));
}

export async function view({ parts: [, session, name], signal, news }) {
  const root = h("div");
  let turns = [];
  async function read() {
    const [seen, whole] = await Promise.all([get(`/sessions/${session}/turns/${name}`, signal), get(`/sessions/${session}`, signal)]);
    turns = [...whole.turns, ...whole.live];
    draw(seen, whole.session);
    return seen;
  }
  function draw(seen, owner) {
    const { line, detail } = seen;
    const place = turns.findIndex((one) => one.turn === name);
    const number = place < 0 ? 0 : place + 1 + Math.max(0, (owner.turns || 0) - turns.filter((one) => one.stop || one.failed).length);
    const link = (to, words, label) => (to ? h("a.button", { href: `#/sessions/${session}/${to.turn}`, "data-step": words, "aria-label": label }, words === "prev" ? "←" : "→") : null);
    const lead = (line.spans || []).filter((span) => span.kind === "call" && !span.cut).map((span) => line.seconds - span.end);
    root.replaceChildren(
      crumbs(["Sessions", "#/sessions"], [owner.key || owner.session, `#/sessions/${session}`], [`Turn ${number}`]),
      h("div.head", {}, h("div.grow", {}, h("h1", { tabindex: "-1" }, `Turn ${number} `, ending(line)), h("p", {}, `${harness(line.harness)} asked ${line.model} by ${line.api}${line.stream ? ", streaming" : ""}, at ${clock(line.at)}`)),
        h("div", {}, link(turns[place - 1], "prev", "Previous turn"), " ", link(turns[place + 1], "next", "Next turn"))),
      h("dl.panel.stats", {},
        stat("Input tokens", count(line.input || 0)), stat("From the cache", percent(line.cached || 0, line.input || 0)), stat("Output tokens", count(line.output || 0), line.reasoning ? `${count(line.reasoning)} reasoning` : ""),
        stat("First event", took(line.ttft ?? -1)), stat("Whole turn", took(line.seconds || 0)),
        stat("Speed", line.output && line.seconds > Math.max(0, line.ttft ?? 0) ? `${Math.round(line.output / (line.seconds - Math.max(0, line.ttft ?? 0)))}` : "–", "tokens/s"),
        stat("Dispatch lead", lead.length ? took(Math.max(...lead)) : "–")),
      h("section.panel.pad", {}, h("div.rowhead", {}, h("h2", {}, "Timeline"), legend()), strip(line, line.seconds || 1, true), axis(line.seconds || 0)),
      detail?.message ? h("section.panel.pad", {}, h("h2", {}, "Why it failed"), h("p", {}, detail.message)) : "",
      h("section.panel.pad", {}, h("h2", {}, "Reply"), reply(seen)),
      prompt(seen),
      h("section.panel.pad", {}, h("h2", {}, "Route"), h("dl.pairs", {},
        h("dt", {}, "Replica"), h("dd", {}, line.replica || "none", line.why ? ` (${line.why}${line.attempts > 1 ? `, attempt ${line.attempts}` : ""})` : ""),
        h("dt", {}, "Tools declared"), h("dd", {}, count(detail?.tools || 0)),
        h("dt", {}, "Turn"), h("dd.mono", {}, line.turn), h("dt", {}, "Request"), h("dd.mono", {}, line.request || "–"),
        detail?.ignored?.length ? [h("dt", {}, "Nobody acted on"), h("dd.mono", {}, detail.ignored.join(", "))] : null)));
  }
  const seen = await read();
  let over = Boolean(seen.line.stop || seen.line.failed);
  news.addEventListener("changed", ({ detail }) => {
    if (!over && (detail.missed || detail.sessions.includes(session))) void read().then((now) => { over = Boolean(now.line.stop || now.line.failed); }, () => {});
  }, { signal });
  return { title: "Turn", root };
}
