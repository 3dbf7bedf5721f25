// Asks servers through the official SDKs. Each line of stdin is a request {url, api, stream, body,
// retries}, each line of stdout what the SDK made of the answer: {answer} or {error}.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { createInterface } from "node:readline";

const claude = ({ url, retries }) =>
  new Anthropic({ baseURL: url, apiKey: "none", maxRetries: retries ?? 0 });
const gpt = ({ url, retries }) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: retries ?? 0 });

function messages(ask) {
  const sdk = claude(ask).messages;
  return ask.stream ? sdk.stream(ask.body).finalMessage() : sdk.create(ask.body);
}

function responses(ask) {
  const sdk = gpt(ask).responses;
  return ask.stream ? sdk.stream(ask.body).finalResponse() : sdk.create(ask.body);
}

async function chat(ask) {
  const sdk = gpt(ask).chat.completions;
  if (!ask.stream) return sdk.create(ask.body);
  // The helper knows no reasoning: of fields that are not in its types it keeps the last delta.
  let reasoning = "";
  const runner = sdk.stream(ask.body);
  runner.on("chunk", (chunk) => {
    reasoning += chunk.choices[0]?.delta?.reasoning_content ?? "";
  });
  const answer = await runner.finalChatCompletion();
  const [choice] = answer.choices;
  const { reasoning: _, reasoning_content: __, ...message } = choice.message;
  if (reasoning) Object.assign(message, { reasoning, reasoning_content: reasoning });
  return { ...answer, choices: [{ ...choice, message }] };
}

function told(error) {
  const { status = null, type = null, code = null, message, requestID = null } = error;
  return { name: error.constructor.name, status, type, code, message, request: requestID };
}

const APIS = { messages, responses, chat };
for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line);
  const result = await APIS[ask.api](ask).then(
    (answer) => ({ answer }),
    (error) => ({ error: told(error) }),
  );
  process.stdout.write(JSON.stringify(result) + "\n");
}
