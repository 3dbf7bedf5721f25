// The playground: one turn on any of the three APIs, streamed as a harness would get it.

import { events, get, withKey } from "./api.js";
import { count, h, stat, took } from "./dom.js";

const MOST_RAW = 400;
const WEATHER = { name: "forecast", description: "The weather of the next days at a place.", schema: { type: "object", properties: { place: { type: "string" }, days: { type: "integer" } }, required: ["place"] } };

const APIS = {
  messages: {
    name: "Messages", path: "../v1/messages",
    body: (ask) => ({ model: ask.model, max_tokens: ask.most, stream: true, ...(ask.system ? { system: ask.system } : {}), messages: [{ role: "user", content: ask.prompt }], ...(ask.tool ? { tools: [{ name: WEATHER.name, description: WEATHER.description, input_schema: WEATHER.schema }] } : {}), ...(ask.thinking === "on" ? { thinking: { type: "enabled", budget_tokens: Math.max(1024, ask.most >> 1) } } : ask.thinking === "off" ? { thinking: { type: "disabled" } } : {}) }),
    headers: { "anthropic-version": "2023-06-01" },
    read(told, say) {
      const { type, content_block: block, delta, usage, message, error } = told;
      if (type === "message_start") say.usage({ input: message.usage.input_tokens + (message.usage.cache_read_input_tokens || 0) + (message.usage.cache_creation_input_tokens || 0), cached: message.usage.cache_read_input_tokens });
      if (type === "content_block_start") say.begin({ thinking: "reasoning", tool_use: "call" }[block.type] || "text", block.name);
      if (type === "content_block_delta") say.more(delta.text ?? delta.thinking ?? delta.partial_json ?? "");
      if (type === "message_delta") say.end(delta.stop_reason, { output: usage?.output_tokens });
      if (type === "error") say.failed(error.message);
    },
  },
  responses: {
    name: "Responses", path: "../v1/responses",
    body: (ask) => ({ model: ask.model, max_output_tokens: ask.most, stream: true, store: false, ...(ask.system ? { instructions: ask.system } : {}), input: ask.prompt, ...(ask.tool ? { tools: [{ type: "function", name: WEATHER.name, description: WEATHER.description, parameters: WEATHER.schema }] } : {}), ...(ask.thinking === "default" ? {} : { reasoning: { effort: ask.thinking === "on" ? "medium" : "none", summary: "auto" } }) }),
    read(told, say) {
      const { type, item, delta, response } = told;
      if (type === "response.output_item.added") say.begin({ reasoning: "reasoning", function_call: "call" }[item.type] || "text", item.name);
      if (/^response\.(output_text|reasoning_text|reasoning_summary_text|function_call_arguments)\.delta$/.test(type)) say.more(delta);
      if (["response.completed", "response.incomplete"].includes(type)) say.end(response.incomplete_details?.reason || response.status, { input: response.usage?.input_tokens, cached: response.usage?.input_tokens_details?.cached_tokens, output: response.usage?.output_tokens });
      if (type === "response.failed") say.failed(response.error?.message || "failed");
      if (type === "error") say.failed(told.message);
    },
  },
  chat: {
    name: "Chat", path: "../v1/chat/completions",
    body: (ask) => ({ model: ask.model, max_completion_tokens: ask.most, stream: true, stream_options: { include_usage: true }, messages: [...(ask.system ? [{ role: "system", content: ask.system }] : []), { role: "user", content: ask.prompt }], ...(ask.tool ? { tools: [{ type: "function", function: { name: WEATHER.name, description: WEATHER.description, parameters: WEATHER.schema } }] } : {}), ...(ask.thinking === "default" ? {} : { reasoning_effort: ask.thinking === "on" ? "medium" : "none" }) }),
    read(told, say) {
      if (told.error) return say.failed(told.error.message);
      const delta = told.choices?.[0]?.delta || {};
      const thought = delta.reasoning_content ?? delta.reasoning;
      if (thought) say.into("reasoning").more(thought);
      if (delta.content) say.into("text").more(delta.content);
      for (const call of delta.tool_calls || []) {
        if (call.function?.name) say.begin("call", call.function.name);
        if (call.function?.arguments) say.more(call.function.arguments);
      }
      const stop = told.choices?.[0]?.finish_reason;
      if (stop) say.end(stop, {});
      if (told.usage) say.usage({ input: told.usage.prompt_tokens, cached: told.usage.prompt_tokens_details?.cached_tokens, output: told.usage.completion_tokens });
      return undefined;
    },
  },
};

// What is said, block by block, as it comes.
class Said {
  constructor(out, stats) {
    [this.out, this.stats, this.began, this.first, this.used, this.stop] = [out, stats, performance.now(), 0, {}, ""];
    out.replaceChildren();
    this.tell();
  }
  begin(kind, tool = "") {
    this.kind = kind;
    this.node = document.createTextNode("");
    this.out.append(h("div.said", { class: kind }, h("div.of", {}, kind === "call" ? `call ${tool}` : kind), h("pre", {}, this.node)));
    return this;
  }
  into(kind) { return this.kind === kind ? this : this.begin(kind); }
  more(text) {
    if (!text) return;
    if (!this.node) this.begin("text");
    if (!this.first) this.first = performance.now();
    this.node.appendData(text);
  }
  usage(given) { Object.assign(this.used, Object.fromEntries(Object.entries(given).filter(([, n]) => n !== undefined && n !== null))); this.tell(); }
  end(stop, used) { this.stop = stop; this.kind = ""; this.usage(used); }
  failed(message) {
    this.stop = "failed";
    this.out.append(h("div.said.bad", { role: "alert" }, h("div.of", {}, "failed"), h("pre", {}, message)));
    this.tell();
  }
  tell() {
    const seconds = (performance.now() - this.began) / 1000;
    const { input, cached, output } = this.used;
    this.stats.replaceChildren(
      stat("First word", this.first ? took((this.first - this.began) / 1000) : "–"), stat("Whole", took(seconds)), stat("Input", input === undefined ? "–" : count(input), cached ? `${count(cached)} cached` : ""),
      stat("Output", output === undefined ? "–" : count(output), output && this.first ? `${Math.round(output / Math.max(0.001, (performance.now() - this.first) / 1000))}/s` : ""), stat("Stop", this.stop || "–", "", this.stop === "failed"));
  }
}

async function send(api, ask, said, raw, signal) {
  const answer = await fetch(api.path, { method: "POST", signal, headers: withKey({ "content-type": "application/json", "x-session-id": ask.session, ...api.headers }), body: JSON.stringify(api.body(ask)) });
  if (!answer.ok) {
    const told = await answer.json().catch(() => null);
    return said.failed(told?.error?.message || `the server answered ${answer.status}`);
  }
  for await (const { data } of events(answer)) {
    raw.push(data);
    if (raw.length > MOST_RAW) raw.shift();
    if (data !== "[DONE]") api.read(JSON.parse(data), said);
  }
  return said.tell();
}

const choose = (name, label, options, chosen) => h("fieldset", {}, h("legend", {}, label), h("div.segments", {}, options.map(([value, words]) => h("label", {}, h("input", { type: "radio", name, value, checked: value === chosen }), words))));

export async function view({ signal }) {
  const about = await get("/about", signal);
  const session = `playground-${Math.random().toString(36).slice(2, 10)}`;
  const raw = [];
  let running = null;
  const out = h("div.out", { "aria-live": "polite" }, h("p.soft", {}, "What the model says appears here, block by block: reasoning, text and calls in the order in which they come."));
  const stats = h("dl.panel.stats");
  const wire = h("pre", { tabindex: "0" });
  const events_ = h("details.block", { ontoggle: () => { wire.textContent = raw.join("\n"); } }, h("summary", {}, h("span.role", {}, "Events on the wire"), h("span.say")), wire);
  const go = h("button.button.main", { type: "submit" }, "Send");
  const stop = h("button.button", { type: "button", disabled: true, onclick: () => running?.abort() }, "Stop");
  const form = h("form.panel.pad.form", {},
    choose("api", "API", Object.entries(APIS).map(([value, api]) => [value, api.name]), "messages"),
    h("div", {}, h("label", { for: "model" }, "Model"), h("select.field", { id: "model", name: "model" }, about.models.map(({ id }) => h("option", { value: id }, id)))),
    h("div", {}, h("label", { for: "system" }, "System"), h("textarea.field", { id: "system", name: "system", rows: 2 }, "You are brief.")),
    h("div", {}, h("label", { for: "prompt" }, "Prompt"), h("textarea.field", { id: "prompt", name: "prompt", rows: 5, required: true }, "What is the weather in Bergen?")),
    choose("thinking", "Thinking", [["default", "default"], ["on", "on"], ["off", "off"]], "default"),
    h("div", {}, h("label", { for: "most" }, "Output tokens at most"), h("input.field", { id: "most", name: "most", type: "number", min: 1, value: 1500 })),
    h("label", { style: { display: "flex", gap: "8px", "align-items": "center", color: "var(--ink)", "font-size": "13px" } }, h("input", { type: "checkbox", name: "tool", checked: true }), h("span", {}, "declare the tool ", h("code", {}, "forecast"))),
    h("div", { style: { display: "flex", gap: "8px", "align-items": "center" } }, go, stop, h("span.soft", { style: { "font-size": "12px" } }, "Ctrl Enter")));
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    running?.abort();
    const given = new FormData(form);
    const ask = { model: given.get("model"), system: given.get("system").trim(), prompt: given.get("prompt"), thinking: given.get("thinking"), most: Number(given.get("most")) || 1500, tool: given.has("tool"), session };
    const mine = (running = new AbortController());
    raw.length = 0;
    [go.disabled, stop.disabled] = [true, false];
    const said = new Said(out, stats);
    try {
      await send(APIS[given.get("api")], ask, said, raw, AbortSignal.any([mine.signal, signal]));
    } catch (error) {
      if (mine.signal.aborted) said.end("stopped", {});
      else if (!signal.aborted) said.failed(error.message);
    } finally {
      [go.disabled, stop.disabled] = [false, true];
      if (events_.open) wire.textContent = raw.join("\n");
    }
  });
  new Said(h("div"), stats);
  return { title: "Playground", root: h("div", {},
    h("div.head", {}, h("div.grow", {}, h("h1", { tabindex: "-1" }, "Playground"), h("p", {}, "One turn, streamed to you as a harness gets it"))),
    h("div.grid.play", {}, form, h("div", {}, stats, h("section.panel.pad", { "aria-label": "Reply" }, out), h("div", { style: { "margin-top": "16px" } }, events_)))) };
}
