import { resolve } from "node:path";
import { startTruewire } from "../test/support/serve.ts";
import { compareEmbeddings } from "./embeddings.ts";
import { installModel } from "./models.ts";
import { freePort } from "./place.ts";
import { keepModel } from "./report.ts";
import { startLlamaServer } from "./servers/llama-server.ts";
import { ollama, startOllama } from "./servers/ollama.ts";
import { textsInManyScripts } from "./texts.ts";
import { ask, clientApis } from "./trials/client-apis.ts";
import type { Answer, ClientApi, Json } from "./trials/client-apis.ts";

/* The same GGUF in Truewire's own engine, in llama.cpp's server and in Ollama: tokens, the most probable texts, logprobs, calls and schemas. */

const [chat] = clientApis as readonly [ClientApi, ...ClientApi[]];

/** A server with the model, and the model's name there. */
interface Server {
  readonly name: string;
  readonly url: string;
  readonly model: string;
}

interface Place {
  readonly own: Server;
  readonly llama: Server;
  /** Other servers that are compared with ours: llama-server, and Ollama where it is installed. */
  readonly others: readonly Server[];
}

/** llama-server closes kept connections after some requests, also while the next one is on its way: it is sent again. */
async function post(url: string, body: Json, attempts = 4): Promise<Json> {
  const headers = { "content-type": "application/json" };
  const sent = fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const response = await sent.catch((error: unknown) => {
    if (attempts === 1) throw error;
  });
  if (!response) return post(url, body, attempts - 1);
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text.slice(0, 200)}`);
  return JSON.parse(text) as Json;
}

/** Says how many are the same, and shows the first that is not. */
function counted(what: string, differences: readonly string[], total: number): string {
  const [first] = differences;
  return `${what}: ${total - differences.length} of ${total} the same${first === undefined ? "" : `; first: ${first}`}`;
}

/** Runs `compare` over the items, some at a time, and returns what it says of those that differ. */
async function differing<T>(items: readonly T[], compare: (item: T) => Promise<string | undefined>): Promise<string[]> {
  const said: string[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) {
      const difference = await compare(item);
      if (difference !== undefined) said.push(difference);
    }
  };
  await Promise.all(Array.from({ length: 4 }, worker));
  return said;
}

async function tokens({ own: { url: ours, model }, llama }: Place, count: number): Promise<string[]> {
  const { url: theirs, model: otherModel } = llama;
  const texts = textsInManyScripts(count);
  const rows: string[] = [];
  for (const parse_special of [true, false]) {
    const different = await differing(texts, async (content) => {
      const body = { content, add_special: true, parse_special };
      const [own, other] = await Promise.all([
        post(`${ours}/tokenize`, { model, ...body }),
        post(`${theirs}/tokenize`, { model: otherModel, ...body }),
      ]);
      const same = JSON.stringify(own["tokens"]) === JSON.stringify(other["tokens"]);
      return same ? undefined : `${JSON.stringify(content)} ${JSON.stringify([own["tokens"], other["tokens"]])}`;
    });
    rows.push(counted(`tokens, parse_special ${parse_special}`, different, texts.length));
  }
  const lost = await differing(texts, async (content) => {
    const { tokens: ids } = await post(`${ours}/tokenize`, { model, content });
    const [own, other] = await Promise.all([
      post(`${ours}/detokenize`, { model, tokens: ids }),
      post(`${theirs}/detokenize`, { model: otherModel, tokens: ids }),
    ]);
    return own["content"] === other["content"]
      ? undefined
      : JSON.stringify([content, own["content"], other["content"]]);
  });
  return [...rows, counted("texts of those tokens", lost, texts.length)];
}

const questions: readonly string[] = [
  "Write a Python function that adds two numbers.",
  "What is the capital of France?",
  "Explain recursion in one sentence.",
  "Translate to German: Good morning, my friend.",
  "List three fruits.",
  "Write a haiku about the sea.",
  "What does `git rebase` do?",
  "Schreibe einen Satz über den Herbst.",
  "用一句话介绍北京。",
  "Fix: for i in range(10) print(i)",
];

interface Token {
  readonly token: string;
  readonly logprob: number;
}

/** The tokens of a text: llama-server also lists the one that ended it, without its text. */
function tokensOf(text: string, listed: readonly Token[]): Token[] {
  const last = listed.at(-1);
  const isEnd = last !== undefined && (last.token === "" || !text.endsWith(last.token));
  return listed.slice(0, isEnd ? -1 : undefined);
}

const asked = (question: string): Json => ({
  messages: [chat.user(question)],
  chat_template_kwargs: { enable_thinking: false },
});

/** The most probable tokens that a server says by its API of OpenAI. */
async function saidInChat({ url, model }: Server, question: string): Promise<readonly Token[]> {
  // Ollama's models think unless told otherwise, and its log probabilities are those of the thoughts, too.
  const more = { temperature: 0, max_tokens: 48, logprobs: true, reasoning_effort: "none" };
  const { choices } = await post(`${url}/v1/chat/completions`, { model, ...asked(question), ...more });
  type Choice = { message: { content: string }; logprobs?: { content: Token[] } | null };
  const [{ message, logprobs }] = choices as [Choice];
  // Ollama leaves them out of an answer without a token.
  return tokensOf(message.content, logprobs?.content ?? []);
}

async function greedy({ own, others }: Place): Promise<string[]> {
  const rows: string[] = [];
  for (const other of others)
    rows.push(...(await greedyTexts(other.name, own, (question) => saidInChat(other, question))));
  const ollama = others.find(({ name }) => name === "Ollama");
  if (!ollama) return rows;
  const { url, model } = ollama;
  const promptOf = async (question: string): Promise<unknown> => {
    const { prompt } = await post(`${own.url}/apply-template`, { model: own.model, ...asked(question) });
    return prompt;
  };
  // What Ollama does otherwise before the model is asked: its prompt, and a penalty of 1.1 for each of the last 64 tokens.
  const [first = ""] = questions;
  const { _debug_info: info } = await post(`${url}/api/chat`, {
    model,
    messages: [chat.user(first)],
    think: false,
    stream: false,
    _debug_render_only: true,
  });
  const theirs = (info as { readonly rendered_template?: string } | undefined)?.rendered_template;
  const ours = await promptOf(first);
  if (theirs !== ours)
    rows.push(`Ollama's prompt is ${JSON.stringify(theirs)}; the file's template makes ${JSON.stringify(ours)}`);
  for (const repeat_penalty of [1.1, 1])
    rows.push(
      ...(await greedyTexts(
        `Ollama with the same prompt and a repeat_penalty of ${repeat_penalty}`,
        own,
        async (question) => {
          const options = { temperature: 0, num_predict: 48, repeat_penalty };
          const more = { raw: true, stream: false, logprobs: true, options };
          const answer = await post(`${url}/api/generate`, { model, prompt: await promptOf(question), ...more });
          return tokensOf(String(answer["response"]), (answer["logprobs"] ?? []) as Token[]);
        },
      )),
    );
  return rows;
}

async function greedyTexts(
  name: string,
  own: Server,
  saidBy: (question: string) => Promise<readonly Token[]>,
): Promise<string[]> {
  const gaps: number[] = [];
  const different = await differing(questions, async (question) => {
    const [ours, theirs] = await Promise.all([saidInChat(own, question), saidBy(question)]);
    const at = ours.findIndex((one, index) => one.token !== theirs[index]?.token);
    for (const [index, one] of ours.slice(0, at === -1 ? ours.length : at).entries())
      gaps.push(Math.abs(one.logprob - (theirs[index]?.logprob ?? Number.NaN)));
    if (at === -1)
      return ours.length === theirs.length ? undefined : `${question} ${ours.length} and ${theirs.length} tokens`;
    const choice = (list: readonly Token[]): string =>
      `${JSON.stringify(list[at]?.token)} (${list[at]?.logprob.toFixed(3)})`;
    return `${question} at token ${at}: ${choice(ours)} and ${choice(theirs)}`;
  });
  gaps.sort((a, b) => a - b);
  const part = (share: number): string => (gaps[Math.floor((gaps.length - 1) * share)] ?? Number.NaN).toFixed(4);
  const texts = counted(`greedy texts of 48 tokens as in ${name}`, different, questions.length);
  if (gaps.length === 0) return [texts];
  return [
    texts,
    `logprobs of ${gaps.length} same tokens in ${name} differ by ${part(0.5)} (median), ${part(0.95)} (95 %), ${part(1)} (most)`,
  ];
}

const weather: Json = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Returns the weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

/** A question that needs the tool, over a server: whether it was called, with the city, and whether the answer has what it returned. */
async function toolCalls(url: string, model: string, stream: boolean): Promise<{ called: number; used: number }> {
  const counts = { called: 0, used: 0 };
  for (const city of ["Paris", "Oslo", "Lima", "Cairo", "Tokyo"]) {
    const more = { temperature: 0, tools: [weather], tool_choice: "auto" };
    const history: Json[] = [chat.user(`What is the weather in ${city} now?`)];
    const say = (): Promise<Answer> => ask(url, chat, { model, history, maxTokens: 128, stream, more });
    const first = await say();
    if (first.calls[0]?.name !== "get_weather" || first.calls[0].input?.["city"] !== city) continue;
    counts.called++;
    history.push(...first.turn, ...chat.results(first.calls, `{"temperature_celsius": 17, "sky": "foggy"}`));
    const { text } = await say();
    if (text.includes("17")) counts.used++;
  }
  return counts;
}

async function calls({ own, others }: Place): Promise<string[]> {
  const rows: string[] = [];
  for (const stream of [false, true]) {
    const said: string[] = [];
    for (const { name, url, model } of [own, ...others]) {
      const { called, used } = await toolCalls(url, model, stream);
      said.push(`${name}: ${called} of 5 called, ${used} results used`);
    }
    rows.push(`tool calls${stream ? ", streamed" : ""}: ${said.join("; ")}`);
  }
  return rows;
}

const schemas: readonly Json[] = [
  {
    type: "object",
    properties: { name: { type: "string", maxLength: 20 }, age: { type: "integer", minimum: 0, maximum: 120 } },
    required: ["name", "age"],
    additionalProperties: false,
  },
  { type: "array", items: { enum: ["red", "green", "blue"] }, minItems: 2, maxItems: 3 },
  {
    type: "object",
    properties: { ok: { type: "boolean" }, note: { anyOf: [{ type: "string", maxLength: 12 }, { type: "null" }] } },
    required: ["ok", "note"],
    additionalProperties: false,
  },
  { type: "string", pattern: "^[A-Z]{3}-[0-9]{4}$" },
  {
    type: "object",
    properties: {
      points: {
        type: "array",
        items: {
          type: "object",
          properties: { x: { type: "number" }, y: { type: "number" } },
          required: ["x", "y"],
          additionalProperties: false,
        },
        minItems: 1,
        maxItems: 2,
      },
    },
    required: ["points"],
    additionalProperties: false,
  },
];

async function structured({ own, others }: Place): Promise<string[]> {
  const { Ajv } = await import("ajv");
  const ajv = new Ajv({ strict: false });
  const validOf = async ({ url, model }: Server): Promise<number> => {
    let valid = 0;
    for (const schema of schemas) {
      const response_format = { type: "json_schema", json_schema: { name: "answer", schema } };
      const more = { temperature: 0, response_format };
      const history = [chat.user("Give an example.")];
      const { text } = await ask(url, chat, { model, history, maxTokens: 160, stream: false, more });
      try {
        if (ajv.validate(schema, JSON.parse(text))) valid++;
      } catch {
        // It is cut, or no JSON.
      }
    }
    return valid;
  };
  const said: string[] = [];
  for (const server of [own, ...others])
    said.push(`${server.name}: ${await validOf(server)} of ${schemas.length} valid`);
  return [`answers by a schema: ${said.join("; ")}`];
}

/** Compares the engines over the models, prints a line for each comparison, and keeps them. `count`: texts for the tokenizers. */
export async function compareModels(names: readonly string[], count: number): Promise<void> {
  for (const name of names) {
    const rows: string[] = [];
    const say = (row: string): void => {
      console.log(`${name}: ${row}`);
      rows.push(row);
    };
    if (name === "minilm") await compareEmbeddings(say);
    else await compareModel(name, count, say);
    keepModel(name, rows);
  }
}

async function compareModel(name: string, count: number, say: (row: string) => void): Promise<void> {
  const file =
    name === "demo" ? resolve("models/demo/demo.gguf") : await installModel(name === "gemma" ? "gemma" : "half");
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const truewire = await startTruewire([file, "--context-size", "4096"]);
    stops.push(() => truewire.stop());
    const { data } = (await (await fetch(`${truewire.url}/v1/models`)).json()) as { data: { id: string }[] };
    const own = { name: "Truewire", url: truewire.url, model: data[0]?.id ?? "" };
    const llama = { name: "llama-server", ...(await startLlamaServer(file, await freePort(), 4096)) };
    stops.push(() => llama.stop());
    const others: Server[] = [llama];
    // A base model has no chat template, and Ollama does not show its tokens.
    if (name !== "gemma" && ollama.version() !== undefined) {
      const started =
        name === "demo"
          ? await ollama.start(await freePort())
          : await startOllama(await freePort(), { file, model: name, contextSize: 4096 });
      others.push({ name: "Ollama", ...started });
      stops.push(() => started.stop());
    }
    for (const part of name === "gemma" ? [tokens] : [tokens, greedy, calls, structured]) {
      const rows = await part({ own, llama, others }, count).catch((error: unknown) => [
        `${part.name}: ${String(error)}`,
      ]);
      for (const row of rows) say(row);
    }
  } finally {
    for (const stop of stops) await stop();
  }
}
