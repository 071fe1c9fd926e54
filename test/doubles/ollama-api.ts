import type { ScriptedAnswer } from "../../src/judge/between/facts.ts";
import { startVendor, type VendorRequest } from "../../src/judge/between/vendor.ts";
import { readOllamaEmbed } from "../../src/wire/apis/ollama/embed.ts";
import {
  ollamaName,
  readOllamaShow,
  writeOllamaProcesses,
  writeOllamaShow,
} from "../../src/wire/apis/ollama/models.ts";
import { exact } from "../../src/wire/apis/profile.ts";
import type { ModelInfo } from "../../src/wire/core/engine.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { FailureError, kindOfStatus } from "../../src/wire/core/failure.ts";
import { failed } from "../support/scripted-engine.ts";
import { listOf, type Json } from "./chat-server.ts";
import { ollama as openaiEndpoint } from "./ollama.ts";

/*
 * Ollama's own API, with the memory that its models are loaded into, and a scripted model. Source: https://github.com/ollama/ollama, 0.33.0:
 * server/routes.go (ChatHandler, GenerateHandler, EmbedHandler, PsHandler), server/prompt.go (chatPrompt: the oldest messages are left out),
 * llm/llama_server.go (completionPromptForRequest: a longer prompt is cut to `num_ctx - (num_ctx - num_keep) / 2`), server/sched.go
 * (needsReload), openai/openai.go and middleware/openai.go (`/v1`).
 *
 * A token is a number of characters. The template writes a message as `<|role|>text\n`, and the tools as JSON before the messages.
 */

export interface OllamaDoubleModel {
  /** What the model was trained for, in `model_info`; default 131072. */
  readonly contextLength?: number;
  /** Default: completion and tools. */
  readonly capabilities?: readonly string[];
  /** As `/api/show` prints them, such as `num_ctx 16384`. */
  readonly parameters?: string;
}

/** What the model gets: the prompt as it was cut, and the request. */
export interface SeenPrompt {
  readonly prompt: string;
  readonly body: Json;
}

export interface OllamaTurn {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: Json }[];
  /** After the text: an error line, a connection that is cut, text without an end. */
  readonly ends?: "error" | "cut" | "endless";
}

export interface OllamaDoubleOptions {
  /** Default: one named `m:latest`. */
  readonly models?: Readonly<Record<string, OllamaDoubleModel>>;
  readonly reply: (seen: SeenPrompt) => string | OllamaTurn;
  /** The context of a request without `num_ctx`, by the memory of the machine or OLLAMA_CONTEXT_LENGTH; default 4096. */
  readonly defaultNumCtx?: number;
  /** The largest context that fits into the memory; default: any. */
  readonly memory?: number;
  /** Of the model's tokenizer; default 4. */
  readonly charactersPerToken?: number;
  /** Before 0.12.4 there is no `truncate` and no `shift`, and calls have no ids. Default: the newest. */
  readonly isOld?: boolean;
}

export interface OllamaDouble {
  /** Without `/v1`. */
  readonly url: string;
  /** The requests that generate or embed, in order. */
  readonly requests: readonly { readonly path: string; readonly body: Json }[];
  readonly refusals: readonly string[];
  /** Each time a model was loaded into memory. The first one is no reload. */
  readonly loads: readonly { readonly model: string; readonly numCtx: number }[];
  /** The paths of all requests, in order. */
  readonly paths: readonly string[];
  /** Requests whose client left before the end. */
  readonly aborted: number;
  /** Characters of answers that were written. */
  readonly written: number;
  /** Unloads a model, as when its `keep_alive` has passed. */
  unload(model: string): void;
  close(): Promise<void>;
}

interface Runner {
  readonly numCtx: number;
  readonly isAuto: boolean;
  readonly shift: boolean;
}

const refused = (status: number, message: string): FailureError =>
  new FailureError({ kind: kindOfStatus(status), status, message });

const imageTokens = 768;
const created = 1_787_363_302;

function modelInfo(
  id: string,
  { contextLength = 131_072, capabilities = ["completion", "tools"] }: OllamaDoubleModel,
): ModelInfo {
  return {
    id,
    created,
    ownedBy: "library",
    endpoints: capabilities.includes("completion") ? ["chat", "completions"] : ["embeddings"],
    contextLength,
    callsTools: capabilities.includes("tools"),
    reasons: capabilities.includes("thinking"),
    takesImages: capabilities.includes("vision"),
    fillsInMiddle: capabilities.includes("insert"),
  };
}

export async function startOllama(options: OllamaDoubleOptions): Promise<OllamaDouble> {
  const {
    models = { "m:latest": {} },
    reply,
    defaultNumCtx = 4096,
    isOld = false,
    charactersPerToken = 4,
    memory = Number.POSITIVE_INFINITY,
  } = options;
  const infos = Object.entries(models).map(([id, model]) => modelInfo(id, model));
  const requests: { path: string; body: Json }[] = [];
  const refusals: string[] = [];
  const loads: { model: string; numCtx: number }[] = [];
  const paths: string[] = [];
  const received: VendorRequest[] = [];
  const loaded = new Map<string, Runner>();

  const infoOf = (model: string): ModelInfo | undefined => infos.find(({ id }) => ollamaName(id) === ollamaName(model));
  const infoNamed = (model: string): ModelInfo => {
    const info = infoOf(model);
    if (!info) throw refused(404, `model '${model}' not found`);
    return info;
  };

  /** Loads a model, or reloads it with other options. Source: server/sched.go, `getRunner` and `needsReload`. */
  const schedule = ({ id: name, contextLength = 0, takesImages = false }: ModelInfo, body: Json): Runner => {
    const own = (body["options"] ?? {}) as Json;
    const ofModel = Number(/^num_ctx\s+(\d+)$/m.exec(models[name]?.parameters ?? "")?.[1] ?? 0);
    const asked = typeof own["num_ctx"] === "number" ? own["num_ctx"] : ofModel;
    const isAuto = asked === 0;
    const numCtx = Math.min(Math.max(isAuto ? defaultNumCtx : asked, takesImages ? 2048 : 4), contextLength);
    const shift = isOld || body["shift"] !== false;
    const before = loaded.get(name);
    const fits = before && (before.numCtx === numCtx || (before.isAuto && isAuto)) && before.shift === shift;
    if (before && fits) return before;
    loaded.delete(name);
    // Source: llm/llama_server.go, `WaitUntilRunning`.
    if (numCtx > memory)
      throw refused(500, "llama-server reported out-of-memory during startup: cudaMalloc failed: out of memory");
    const runner = { numCtx, isAuto, shift };
    loaded.set(name, runner);
    loads.push({ model: name, numCtx });
    return runner;
  };

  const tokens = (text: string): number => Math.ceil(text.length / charactersPerToken);

  /** Source: server/prompt.go, `chatPrompt`. */
  const chatPrompt = (body: Json, messages: readonly Json[], { numCtx }: Runner, truncate: boolean): string => {
    const tools = body["tools"] === undefined || body["tools"] === null ? "" : `${JSON.stringify(body["tools"])}\n`;
    const render = (list: readonly Json[]): string =>
      tools +
      list
        .map(({ role, content, thinking, tool_calls: calls }) =>
          [
            `<|${String(role)}|>`,
            ...(thinking === undefined ? [] : [`<think>${String(thinking)}</think>`]),
            String(content ?? ""),
            ...(calls === undefined ? [] : [JSON.stringify(calls)]),
            "\n",
          ].join(""),
        )
        .join("");
    const images = (list: readonly Json[]): number =>
      list.reduce((sum, { images: own }) => sum + (Array.isArray(own) ? own.length : 0), 0);
    const kept = (from: number): readonly Json[] => [
      ...messages.slice(0, from).filter(({ role }) => role === "system"),
      ...messages.slice(from),
    ];
    const size = (from: number): number => tokens(render(kept(from))) + imageTokens * images(messages.slice(from));
    const last = truncate ? messages.length - 1 : 0;
    let from = 0;
    while (from < last && size(from) > numCtx) from++;
    return render(kept(from));
  };

  /** Source: llm/llama_server.go, `completionPromptForRequest`; llama.cpp's server refuses what is not cut. */
  const cutPrompt = (prompt: string, body: Json, { numCtx, shift }: Runner, truncate: boolean): string => {
    const count = tokens(prompt);
    const hasImages = JSON.stringify(body).includes('"images":[');
    if (!truncate || hasImages) {
      if (count < numCtx) return prompt;
      const message = `request (${count} tokens) exceeds the available context size (${numCtx} tokens), try increasing it`;
      const error = { code: 400, message, type: "exceed_context_size_error", n_prompt_tokens: count, n_ctx: numCtx };
      throw refused(400, JSON.stringify({ error }));
    }
    if (count <= numCtx - 1) return prompt;
    if (!shift)
      throw refused(
        400,
        "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the context length in settings, or use a model with a longer context length",
      );
    const keep = Math.min(4, numCtx - 1);
    const limit = numCtx - Math.max(Math.floor((numCtx - keep) / 2), 1);
    return prompt.slice(0, keep * charactersPerToken) + prompt.slice((keep + count - limit) * charactersPerToken);
  };

  /** The events of an answer: deltas of text, then its end with the counts. */
  function* eventsOf(turn: OllamaTurn, body: Json, prompt: string, runner: Runner): Generator<GenerationEvent[]> {
    const choice = 0;
    const limit = Number(((body["options"] ?? {}) as Json)["num_predict"] ?? -1);
    const promptTokens = tokens(prompt);
    // Without a shift the answer ends where the context is full.
    const space = runner.shift ? Number.POSITIVE_INFINITY : runner.numCtx - promptTokens;
    const most = Math.min(limit < 0 ? Number.POSITIVE_INFINITY : limit, space);
    let generated = 0;
    let isCut = false;
    for (const [type, text] of [
      ["reasoning-delta", body["think"] === false ? "" : (turn.thinking ?? "")],
      ["text-delta", turn.text ?? ""],
    ] as const) {
      for (let at = 0; at < text.length && !isCut; at += charactersPerToken) {
        if (generated >= most) isCut = true;
        else {
          generated++;
          yield [{ type, choice, text: text.slice(at, at + charactersPerToken) }];
        }
      }
    }
    if (turn.ends === "error") {
      const message = "an error was encountered while running the model: CUDA error";
      return yield [failed("engine-error", { message })];
    }
    // The connection is cut before this.
    if (turn.ends === "cut")
      return yield [failed("engine-error", { message: "model runner has unexpectedly stopped" })];
    while (turn.ends === "endless") yield [{ type: "text-delta", choice, text: "0123456789 ".repeat(500) }];
    const calls = isCut ? [] : (turn.calls ?? []);
    for (const [index, { name, arguments: input }] of calls.entries()) {
      const id = isOld ? "" : `call_${String(requests.length).padStart(6, "0")}${String(index).padStart(2, "0")}`;
      yield [
        { type: "tool-call-start", choice, index, id, name },
        { type: "tool-call-delta", choice, index, arguments: JSON.stringify(input) },
        { type: "tool-call-end", choice, index, status: "succeeded" },
      ];
    }
    if (calls.length > 0) generated += tokens(JSON.stringify(calls));
    yield [
      { type: "finish", choice, reason: isCut ? "length" : calls.length > 0 ? "tool-calls" : "stop" },
      { type: "usage", usage: { promptTokens, completionTokens: generated }, timings },
      { type: "end", end: { kind: "done" } },
    ];
  }

  /** Loads or unloads the model, or runs it. `isChat`: at the path of conversations. */
  const answerOf = (body: Json, isChat: boolean, isStream: boolean): ScriptedAnswer => {
    const info = infoNamed(String(body["model"]));
    const messages = isChat ? listOf(body["messages"]) : [{ role: "user", content: body["prompt"] }];
    const isEmpty = isChat ? messages.length === 0 : (body["prompt"] ?? "") === "";
    const nothing = { batches: [[{ type: "end", end: { kind: "done" } }]] } as const;
    if (isChat && isEmpty && isZero(body["keep_alive"])) {
      loaded.delete(info.id);
      return nothing;
    }
    if (info.endpoints[0] === "embeddings")
      throw refused(400, `${JSON.stringify(body["model"])} does not support ${isChat ? "chat" : "generate"}`);
    // Until 0.17 at least, only gpt-oss has levels.
    if (isOld && typeof body["think"] === "string")
      throw refused(400, `think value ${JSON.stringify(body["think"])} is not supported for this model`);
    const runner = schedule(info, body);
    if (isEmpty) return nothing;
    const truncate = isOld || body["truncate"] !== false;
    const isRaw = body["raw"] === true;
    const rendered = isRaw ? String(body["prompt"]) : chatPrompt(body, messages, runner, truncate);
    const prompt = cutPrompt(rendered, body, runner, truncate);
    const answer = reply({ prompt, body });
    const turn = typeof answer === "string" ? { text: answer } : answer;
    if (turn.ends === "endless") return { batches: eventsOf(turn, body, prompt, runner) };
    const batches = [...eventsOf(turn, body, prompt, runner)];
    batches[0]?.unshift({ type: "start", choice: 0 });
    return { batches, ...(turn.ends === "cut" && isStream && { cutAfter: batches.length - 1 }) };
  };

  const embed = (body: Json): Json => {
    const { inputs, model } = readOllamaEmbed(body, "", exact).request;
    const info = infoOf(model);
    // Source: server/routes.go, `handleScheduleError`.
    if (!info) throw refused(404, `model "${model}" not found, try pulling it first`);
    const { numCtx } = schedule(info, body);
    const most = Math.min(numCtx, info.contextLength ?? 0);
    const counts = (inputs as readonly string[]).map((text) => tokens(text));
    if (body["truncate"] === false && counts.some((count) => count > most))
      throw refused(400, "the input length exceeds the context length");
    const embeddings = inputs.map((text) => [text.length, 1, 0]);
    const prompt_eval_count = counts.reduce((sum, count) => sum + Math.min(count, most), 0);
    return { model: body["model"], embeddings, total_duration: 1, load_duration: 1, prompt_eval_count };
  };

  const show = (body: unknown): Json => {
    const name = readOllamaShow(body, exact);
    const info = infoNamed(name);
    const { parameters } = models[info.id] ?? {};
    return {
      ...(JSON.parse(writeOllamaShow(info, name, "")) as Json),
      ...(parameters !== undefined && { parameters }),
    };
  };

  const processes = (): Json => {
    const running = [...loaded].map(([id, { numCtx }]) => ({
      info: { ...infoNamed(id), contextLength: numCtx },
      digest: "d",
      memory: 1,
      expiresMs: null,
    }));
    return JSON.parse(writeOllamaProcesses(running, created * 1000)) as Json;
  };

  /** Source: openai/openai.go, `FromChatRequest`: no `num_ctx`, and a part of a content is a message of its own. */
  const fromOpenai = (body: Json): Json => {
    const messages = (body["messages"] as readonly Json[]).flatMap((message): readonly Json[] => {
      const { content, tool_calls: calls, ...rest } = message;
      const called = Array.isArray(calls)
        ? { tool_calls: calls.map((call: Json) => ({ ...call, function: parsedCall(call["function"] as Json) })) }
        : {};
      if (!Array.isArray(content)) return [{ ...rest, content: content ?? "", ...called }];
      return content.map((part: Json) =>
        part["type"] === "text"
          ? { role: rest["role"], content: part["text"] }
          : { role: rest["role"], content: "", images: ["AAAA"] },
      );
    });
    const { model, tools, stream, stop, max_tokens: limit } = body;
    const extra = { ...(stop !== undefined && { stop: typeof stop === "string" ? [stop] : stop }) };
    const predict = limit === undefined ? {} : { num_predict: limit };
    return { model, messages, tools, stream, options: { temperature: 1, top_p: 1, ...predict, ...extra } };
  };

  const { url, close } = await startVendor({
    apis: ["ollama", "chat"],
    port: 0,
    isKeyless: true,
    models: infos,
    onRefusal: (words) => void refusals.push(words),
    other({ method, path, body }) {
      paths.push(`${method} ${path}`);
      switch (`${method} ${path}`) {
        case "GET /api/version":
          return isOld ? { version: "0.11.11" } : undefined;
        case "GET /api/ps":
          return processes();
        case "POST /api/show":
          return show(body());
        case "POST /api/embed":
          requests.push({ path, body: body() as Json });
          return embed(body() as Json);
      }
      return undefined;
    },
    refusal(request) {
      const { api, path, body = {} } = request;
      received.push(request);
      requests.push({ path, body });
      const refusal = api === "chat" ? openaiEndpoint({ reasons: true }).refusal(body) : undefined;
      if (refusal) refusals.push(JSON.stringify(refusal.body));
      return refusal && { status: refusal.status, body: refusal.body as Json };
    },
    answer({ api, path, body = {}, request }) {
      const isStream = request?.stream ?? false;
      if (api === "chat") return answerOf(fromOpenai(body), true, isStream);
      return answerOf(body, path === "/api/chat", isStream);
    },
  });
  return {
    url,
    requests,
    refusals,
    loads,
    paths,
    get aborted() {
      return received.filter(({ wasLeft }) => wasLeft).length;
    },
    get written() {
      return received.reduce((sum, { sent }) => sum + sent.length, 0);
    },
    unload: (model) => void loaded.delete(model),
    close,
  };
}

const timings = { queuedMs: 0, promptMs: 500, generationMs: 2000, promptTokensPerSecond: 0, tokensPerSecond: 0 };

function isZero(keepAlive: unknown): boolean {
  return keepAlive === 0 || keepAlive === "0" || keepAlive === "0s";
}

function parsedCall(call: Json): Json {
  return { ...call, arguments: JSON.parse(String(call["arguments"])) as unknown };
}
