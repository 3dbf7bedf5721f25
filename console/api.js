// What the server is asked. A key, where one is needed, lives as long as this browser tab.

const BASE = "api";
const KEY = "treadle-key";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const key = () => sessionStorage.getItem(KEY) || "";
export const useKey = (given) => (given ? sessionStorage.setItem(KEY, given) : sessionStorage.removeItem(KEY));
export const withKey = (headers = {}) => (key() ? { ...headers, authorization: `Bearer ${key()}` } : headers);

export async function get(path, signal) {
  const answer = await fetch(`${BASE}${path}`, { headers: withKey(), signal });
  if (answer.ok) return answer.json();
  const said = await answer.json().catch(() => null);
  throw new Refused(answer.status, said?.error?.message || `the server answered ${answer.status}`);
}

// The events of one SSE response, as {event, data}; `data` is text. Ends with the response.
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const pieces = rest.split(/\r?\n\r?\n/);
      rest = pieces.pop();
      for (const piece of pieces) {
        const told = { event: "", data: "" };
        for (const line of piece.split(/\r?\n/)) {
          if (line.startsWith("event:")) told.event = line.slice(6).trim();
          else if (line.startsWith("data:")) told.data += line.slice(5).trimStart();
        }
        if (told.data) yield told;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

// Follow a topic until `signal` aborts: `hear(event, data)`, and `state("on" | "lost")`. Comes back
// by itself when the stream ends, and rests while nobody looks at the page.
export async function follow(topic, { hear, state = () => {}, signal }) {
  let wait = 500;
  while (!signal.aborted) {
    if (document.hidden) {
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
      continue;
    }
    try {
      const answer = await fetch(`${BASE}/events?topic=${topic}`, { headers: withKey(), signal });
      if (!answer.ok) throw new Refused(answer.status, "refused");
      state("on");
      for await (const { event, data } of events(answer)) {
        wait = 500;
        hear(event, JSON.parse(data));
      }
    } catch (error) {
      if (signal.aborted) return;
      state(error instanceof Refused && [401, 403].includes(error.status) ? "closed" : "lost");
      wait = Math.min(10_000, wait * 2);
    }
    await pause(wait, signal);
  }
}
