import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ollama as openaiEndpoint } from "./ollama.ts";
import { checkGo, GoJsonError, goRequests, optionRefusal } from "./ollama-json.ts";

/*
 * A server that behaves as Ollama does, with a scripted model. Source: https://github.com/ollama/ollama, 0.33.0: server/routes.go
 * (ChatHandler, GenerateHandler, EmbedHandler, ShowHandler, PsHandler, streamResponse), server/prompt.go (chatPrompt: the oldest messages
 * are left out), llm/llama_server.go (completionPromptForRequest: a longer prompt is cut to `num_ctx - (num_ctx - num_keep) / 2`),
 * server/sched.go (needsReload), server/routes_generate_test.go (texts of errors), openai/openai.go and middleware/openai.go (`/v1`).
 *
 * A token is a number of characters. The template writes a message as `<|role|>text\n`, and the tools as JSON before the messages.
 */

type Json = Readonly<Record<string, unknown>>;

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

class Refused extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const imageTokens = 768;
const createdAt = "2026-08-22T01:48:22.123456789Z";

export async function startOllama(options: OllamaDoubleOptions): Promise<OllamaDouble> {
  const {
    models = { "m:latest": {} },
    reply,
    defaultNumCtx = 4096,
    isOld = false,
    charactersPerToken = 4,
    memory = Number.POSITIVE_INFINITY,
  } = options;
  const requests: { path: string; body: Json }[] = [];
  const refusals: string[] = [];
  const loads: { model: string; numCtx: number }[] = [];
  const paths: string[] = [];
  const loaded = new Map<string, Runner>();
  const state = { aborted: 0, written: 0 };

  const nameOf = (model: unknown): string => {
    const name = typeof model === "string" ? model : "";
    const full = name.includes(":") ? name : `${name}:latest`;
    if (name === "") throw new Refused(400, "model is required");
    if (Object.hasOwn(models, name)) return name;
    if (!Object.hasOwn(models, full)) throw new Refused(404, `model '${name}' not found`);
    return full;
  };
  const capabilitiesOf = (name: string): readonly string[] => models[name]?.capabilities ?? ["completion", "tools"];
  const trainedFor = (name: string): number => models[name]?.contextLength ?? 131_072;

  /** Loads a model, or reloads it with other options. Source: server/sched.go, `getRunner` and `needsReload`. */
  const schedule = (name: string, body: Json, wanted: readonly string[]): Runner => {
    const missing = wanted.filter((capability) => !capabilitiesOf(name).includes(capability));
    if (missing.length > 0)
      throw new Refused(400, `registry.ollama.ai/library/${name} does not support ${missing.join("\n")}`);
    const own = (body["options"] ?? {}) as Json;
    const wrong = optionRefusal(own);
    if (wrong !== undefined) throw new Refused(500, wrong);
    const ofModel = Number(/^num_ctx\s+(\d+)$/m.exec(models[name]?.parameters ?? "")?.[1] ?? 0);
    const asked = typeof own["num_ctx"] === "number" ? own["num_ctx"] : ofModel;
    const isAuto = asked === 0;
    const least = capabilitiesOf(name).includes("vision") ? 2048 : 4;
    const numCtx = Math.min(Math.max(isAuto ? defaultNumCtx : asked, least), trainedFor(name));
    const shift = isOld || body["shift"] !== false;
    const before = loaded.get(name);
    const fits = before && (before.numCtx === numCtx || (before.isAuto && isAuto)) && before.shift === shift;
    if (before && fits) return before;
    loaded.delete(name);
    // Source: llm/llama_server.go, `WaitUntilRunning`.
    if (numCtx > memory)
      throw new Refused(500, "llama-server reported out-of-memory during startup: cudaMalloc failed: out of memory");
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
      throw new Refused(400, JSON.stringify({ error }));
    }
    if (count <= numCtx - 1) return prompt;
    if (!shift)
      throw new Refused(
        400,
        "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the context length in settings, or use a model with a longer context length",
      );
    const keep = Math.min(4, numCtx - 1);
    const limit = numCtx - Math.max(Math.floor((numCtx - keep) / 2), 1);
    return prompt.slice(0, keep * charactersPerToken) + prompt.slice((keep + count - limit) * charactersPerToken);
  };

  const checkFormat = (format: unknown): void => {
    if (format === undefined || format === null || format === "" || format === "json") return;
    if (typeof format === "object" && !Array.isArray(format)) return;
    throw new Refused(
      500,
      `invalid format: ${JSON.stringify(JSON.stringify(format))}; expected "json" or a valid JSON Schema object`,
    );
  };

  const checkThink = (name: string, body: Json): void => {
    const isOn = body["think"] === true || typeof body["think"] === "string";
    if (isOn && !capabilitiesOf(name).includes("thinking"))
      throw new Refused(400, `${JSON.stringify(body["model"])} does not support thinking`);
    // Until 0.17 at least, only gpt-oss has levels.
    if (isOld && typeof body["think"] === "string")
      throw new Refused(400, `think value ${JSON.stringify(body["think"])} is not supported for this model`);
  };

  const checkLogprobs = ({ top_logprobs: top = 0 }: Json): void => {
    if (Number(top) < 0 || Number(top) > 20) throw new Refused(400, "top_logprobs must be between 0 and 20");
  };

  /** The lines of an answer: pieces of text, then the last one with the counts. */
  function* linesOf(body: Json, prompt: string, runner: Runner, kind: "chat" | "generate"): Generator<Json | "cut"> {
    const answer = reply({ prompt, body });
    const turn: OllamaTurn = typeof answer === "string" ? { text: answer } : answer;
    const head = { model: body["model"], created_at: createdAt };
    const line = (message: Json): Json =>
      kind === "chat"
        ? { ...head, message: { role: "assistant", content: "", ...message }, done: false }
        : { ...head, response: "", ...renamed(message), done: false };
    const limit = Number(((body["options"] ?? {}) as Json)["num_predict"] ?? -1);
    const promptTokens = tokens(prompt);
    // Without a shift the answer ends where the context is full.
    const space = runner.shift ? Number.POSITIVE_INFINITY : runner.numCtx - promptTokens;
    const most = Math.min(limit < 0 ? Number.POSITIVE_INFINITY : limit, space);
    let generated = 0;
    let isCut = false;
    for (const [member, text] of [
      ["thinking", body["think"] === false ? "" : (turn.thinking ?? "")],
      ["content", turn.text ?? ""],
    ] as const) {
      for (let at = 0; at < text.length && !isCut; at += charactersPerToken) {
        if (generated >= most) isCut = true;
        else {
          generated++;
          yield line({ [member]: text.slice(at, at + charactersPerToken) });
        }
      }
    }
    if (turn.ends === "error") return yield { error: "an error was encountered while running the model: CUDA error" };
    if (turn.ends === "cut") return yield "cut";
    while (turn.ends === "endless") yield line({ content: "0123456789 ".repeat(500) });
    if (turn.calls && !isCut) {
      const calls = turn.calls.map((call, index) => ({
        ...(!isOld && { id: `call_${String(requests.length).padStart(6, "0")}${String(index).padStart(2, "0")}` }),
        function: { index, name: call.name, arguments: call.arguments },
      }));
      generated += tokens(JSON.stringify(turn.calls));
      yield line({ tool_calls: calls });
    }
    yield {
      ...line({}),
      done: true,
      done_reason: isCut ? "length" : "stop",
      total_duration: 5_043_500_667,
      load_duration: 40_000_000,
      prompt_eval_count: promptTokens,
      prompt_eval_duration: 500_000_000,
      eval_count: generated,
      eval_duration: 2_000_000_000,
    };
  }

  /** One answer of a whole: what the lines contain together. */
  const wholeOf = (lines: Iterable<Json | "cut">): Json => {
    let last: Json = {};
    const texts = { content: "", thinking: "", response: "" };
    let calls: readonly unknown[] | undefined;
    for (const line of lines) {
      if (line === "cut") throw new Refused(500, "model runner has unexpectedly stopped");
      if (typeof line["error"] === "string") throw new Refused(500, line["error"]);
      last = line;
      const message = (line["message"] ?? {}) as Json;
      texts.content += String(message["content"] ?? "");
      texts.thinking += String(message["thinking"] ?? line["thinking"] ?? "");
      texts.response += String(line["response"] ?? "");
      if (Array.isArray(message["tool_calls"])) calls = message["tool_calls"];
    }
    const thinking = texts.thinking === "" ? {} : { thinking: texts.thinking };
    if (last["message"] === undefined) return { ...last, response: texts.response, ...thinking };
    const message = { role: "assistant", content: texts.content, ...thinking, ...(calls && { tool_calls: calls }) };
    return { ...last, message };
  };

  /** Source: server/routes.go, `streamResponse`: an error before the first line has a status. */
  const send = (
    response: ServerResponse,
    lines: Generator<Json | "cut">,
    write: (line: Json) => string,
    end = "",
  ): void => {
    const type = end === "" ? "application/x-ndjson" : "text/event-stream";
    let isOver = false;
    response.on("close", () => {
      if (!isOver) state.aborted++;
    });
    const pour = (): void => {
      while (!response.destroyed) {
        const { value, done } = lines.next();
        if (done === true) {
          isOver = true;
          return void response.end(end);
        }
        if (value === "cut") {
          isOver = true;
          return void response.socket?.destroySoon();
        }
        if (!response.headersSent) {
          if (value["error"] !== undefined) {
            isOver = true;
            return void response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify(value));
          }
          response.writeHead(200, { "content-type": type });
        }
        const text = write(value);
        state.written += text.length;
        if (!response.write(text)) return void response.once("drain", pour);
      }
    };
    pour();
  };

  const chat = (body: Json): Generator<Json | "cut"> => {
    checkLogprobs(body);
    const name = nameOf(body["model"]);
    const messages = (body["messages"] ?? []) as readonly Json[];
    if (messages.length === 0 && isZero(body["keep_alive"])) {
      loaded.delete(name);
      return one({
        model: body["model"],
        created_at: createdAt,
        message: assistant,
        done: true,
        done_reason: "unload",
      });
    }
    const tools = Array.isArray(body["tools"]) && body["tools"].length > 0;
    if (!capabilitiesOf(name).includes("completion"))
      throw new Refused(400, `${JSON.stringify(body["model"])} does not support chat`);
    checkThink(name, body);
    const runner = schedule(name, body, tools ? ["tools"] : []);
    if (messages.length === 0)
      return one({ model: body["model"], created_at: createdAt, message: assistant, done: true, done_reason: "load" });
    checkFormat(body["format"]);
    const truncate = isOld || body["truncate"] !== false;
    const prompt = cutPrompt(chatPrompt(body, messages, runner, truncate), body, runner, truncate);
    return linesOf(body, prompt, runner, "chat");
  };

  const generate = (body: Json): Generator<Json | "cut"> => {
    checkLogprobs(body);
    const name = nameOf(body["model"]);
    if (body["raw"] === true && (body["template"] || body["system"] || body["context"]))
      throw new Refused(400, "raw mode does not support template, system, or context");
    if (!capabilitiesOf(name).includes("completion"))
      throw new Refused(400, `${JSON.stringify(body["model"])} does not support generate`);
    checkThink(name, body);
    const runner = schedule(name, body, (body["suffix"] ?? "") === "" ? [] : ["insert"]);
    const text = String(body["prompt"] ?? "");
    if (text === "")
      return one({ model: body["model"], created_at: createdAt, response: "", done: true, done_reason: "load" });
    checkFormat(body["format"]);
    const truncate = isOld || body["truncate"] !== false;
    const prompt = body["raw"] === true ? text : chatPrompt(body, [{ role: "user", content: text }], runner, truncate);
    return linesOf(body, cutPrompt(prompt, body, runner, truncate), runner, "generate");
  };

  const embed = (body: Json): Json => {
    const name = nameOf(body["model"]);
    const { input } = body;
    const texts = typeof input === "string" ? (input === "" ? [] : [input]) : (input ?? []);
    if (!Array.isArray(texts) || texts.some((text) => typeof text !== "string"))
      throw new Refused(400, "invalid input type");
    const { numCtx } = schedule(name, body, []);
    const most = Math.min(numCtx, trainedFor(name));
    let count = 0;
    const embeddings = (texts as string[]).map((text) => {
      if (tokens(text) > most && body["truncate"] === false)
        throw new Refused(400, "the input length exceeds the context length");
      count += Math.min(tokens(text), most);
      return [text.length, 1, 0];
    });
    return { model: body["model"], embeddings, total_duration: 1, load_duration: 1, prompt_eval_count: count };
  };

  const details = {
    parent_model: "",
    format: "gguf",
    family: "double",
    families: ["double"],
    parameter_size: "1B",
    quantization_level: "Q4_K_M",
  };

  const show = (body: Json): Json => {
    const name = nameOf(body["model"] ?? body["name"]);
    const { parameters } = models[name] ?? {};
    return {
      ...(parameters !== undefined && { parameters }),
      template: "{{ .Prompt }}",
      details,
      model_info: {
        "general.architecture": "double",
        "double.context_length": trainedFor(name),
        "double.embedding_length": 3,
      },
      capabilities: capabilitiesOf(name),
      modified_at: createdAt,
    };
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

  const http = createServer((request, response) => {
    const path = (request.url ?? "").replace(/\?.*/, "");
    paths.push(`${request.method} ${path}`);
    const json = (status: number, body: unknown): void =>
      void response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
    void bodyOf(request).then((text) => {
      try {
        if (request.method !== "POST") {
          const found = gets[path]?.();
          if (found === undefined) return void response.writeHead(404).end("404 page not found");
          if (typeof found === "string") return void response.writeHead(200).end(found);
          return json(200, found);
        }
        if (path === "/v1/chat/completions") {
          const body = parsed(text);
          requests.push({ path, body });
          const refused = openaiEndpoint({ reasons: true }).refusal(body);
          if (refused) {
            refusals.push(JSON.stringify(refused.body));
            return json(refused.status, refused.body);
          }
          const lines = chat(fromOpenai(body));
          if (body["stream"] === true) return send(response, lines, chunkOf, "data: [DONE]\n\n");
          return json(200, completionOf(wholeOf(lines)));
        }
        const type = goRequests[path];
        if (!type) return void response.writeHead(404).end("404 page not found");
        const body = parsed(text);
        if (path !== "/api/show") requests.push({ path, body });
        checkGo(body, type);
        if (path === "/api/show") return json(200, show(body));
        if (path === "/api/embed") return json(200, embed(body));
        const lines = path === "/api/chat" ? chat(body) : generate(body);
        if (body["stream"] === false) return json(200, wholeOf(lines));
        return send(response, lines, (line) => `${JSON.stringify(line)}\n`);
      } catch (error) {
        if (!(error instanceof Refused) && !(error instanceof GoJsonError)) throw error;
        refusals.push(error.message);
        const status = error instanceof Refused ? error.status : 400;
        if (!path.startsWith("/v1")) return json(status, { error: error.message });
        return json(status, {
          error: { message: error.message, type: "invalid_request_error", param: null, code: null },
        });
      }
    });
  });

  const gets: Readonly<Record<string, () => unknown>> = {
    "/": () => "Ollama is running",
    "/api/version": () => ({ version: isOld ? "0.11.11" : "0.33.0" }),
    "/api/tags": () => ({
      models: Object.keys(models).map((name) => ({
        name,
        model: name,
        modified_at: createdAt,
        size: 1,
        digest: "d",
        details,
      })),
    }),
    "/api/ps": () => ({
      models: [...loaded].map(([name, { numCtx }]) => ({
        name,
        model: name,
        size: 1,
        digest: "d",
        details,
        expires_at: createdAt,
        size_vram: 1,
        context_length: numCtx,
      })),
    }),
    "/v1/models": () => ({
      object: "list",
      data: Object.keys(models).map((id) => ({ id, object: "model", created: 1_760_000_000, owned_by: "library" })),
    }),
  };

  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    requests,
    refusals,
    loads,
    paths,
    get aborted() {
      return state.aborted;
    },
    get written() {
      return state.written;
    },
    unload: (model) => void loaded.delete(model),
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

const assistant = { role: "assistant", content: "" };

function* one(line: Json): Generator<Json> {
  yield line;
}

/** In answers of `/api/generate` the text is `response`. */
function renamed({ content, ...others }: Json): Json {
  return content === undefined ? others : { ...others, response: content };
}

function isZero(keepAlive: unknown): boolean {
  return keepAlive === 0 || keepAlive === "0" || keepAlive === "0s";
}

/** Source: gin's `ShouldBindJSON`. */
function parsed(text: string): Json {
  if (text.trim() === "") throw new Refused(400, "missing request body");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refused(400, `invalid character '${text.trim().charAt(0)}' looking for beginning of value`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Refused(400, "json: cannot unmarshal array into Go value of type api.ChatRequest");
  return value as Json;
}

function parsedCall(call: Json): Json {
  return { ...call, arguments: JSON.parse(String(call["arguments"])) as unknown };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += String(piece);
  return text;
}

const openaiHead = { id: "chatcmpl-1", created: 1_760_000_000, model: "m", system_fingerprint: "fp_ollama" };

function openaiCalls(calls: unknown): readonly Json[] | undefined {
  if (!Array.isArray(calls)) return undefined;
  return calls.map((call: Json) => {
    const { index, name, arguments: args } = call["function"] as Json;
    return { id: call["id"], index, type: "function", function: { name, arguments: JSON.stringify(args) } };
  });
}

function usageOf(line: Json): Json {
  const prompt = Number(line["prompt_eval_count"]);
  const completion = Number(line["eval_count"]);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function chunkOf(line: Json): string {
  const { content, tool_calls: calls } = (line["message"] ?? {}) as Json;
  const tools = openaiCalls(calls);
  const delta = { role: "assistant", content, ...(tools && { tool_calls: tools }) };
  const finish = line["done"] === true ? line["done_reason"] : null;
  const chunk = {
    ...openaiHead,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

function completionOf(whole: Json): Json {
  const { content, tool_calls: calls } = whole["message"] as Json;
  const tools = openaiCalls(calls);
  const message = { role: "assistant", content, ...(tools && { tool_calls: tools }) };
  const finish = tools && whole["done_reason"] === "stop" ? "tool_calls" : whole["done_reason"];
  return {
    ...openaiHead,
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason: finish }],
    usage: usageOf(whole),
  };
}
