import { createHmac } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "../support/listen.ts";
import { placeOf, Sessions } from "./task.ts";
import type { Conversation, Step, TaskCall } from "./task.ts";

/* The frame of all doubles of chat servers: a file for each server says what it gives with an answer, and what it refuses. */

export type Json = Readonly<Record<string, unknown>>;

/** What a server answers in place of the model's words. */
export interface Refusal {
  readonly status: number;
  readonly body: unknown;
}

/** One server: how it is known, what its messages have besides texts and calls, and what it refuses. */
export interface ChatServer {
  readonly name: string;
  /** `owned_by` in its list of models. */
  readonly owner: string;
  /** The model of its sessions. */
  readonly model?: string;
  /** `created` in its list of models. */
  readonly created?: number;
  /** Further members in its list of models. */
  readonly listed?: Json;
  /** What it says at other paths below its root, such as `/api/show`. */
  readonly others?: Readonly<Record<string, unknown>>;
  /** Why it refuses a body; undefined: it does not. */
  refusal(body: Json): Refusal | undefined;
  /** What it does not refuse although its model has lost something. */
  lost?(body: Json): readonly string[];
  /** The `prompt_tokens` that it reports; default: a token is four characters, as of most models. */
  promptTokens?(body: Json): number;
  /** Its streams report usage with the finish reason, whether it is requested or not. */
  readonly reportsUsage?: boolean;
  /** Its calls arrive whole. */
  readonly wholeCalls?: boolean;
  /** Members of a whole message. */
  message?(step: Step): Json;
  /** Deltas of a stream that come before the text: those of reasoning. */
  deltas?(step: Step): readonly Json[];
  /** The text in the place of `content`. */
  content?(step: Step): unknown;
  /** Further members of a call. */
  callMembers?(call: TaskCall, index: number): Json;
  /** Starts a server of another API, in place of the one below. */
  start?(turn: Turns | undefined, models: readonly string[]): Promise<Double>;
}

/** One answer of the model, or only its text. */
export type Turn = string | Partial<Step>;
export type Turns = Turn | ((body: Json) => Turn);

export interface Double {
  /** The base URL, `/v1` included where the API has it. */
  readonly url: string;
  /** Bodies that were answered or refused, in order. */
  readonly requests: readonly Json[];
  /** What was refused, in the server's words. */
  readonly refusals: readonly string[];
  /** How many requests were answered. */
  readonly turns: number;
  /** What the server does not refuse although its model has lost something: reasoning, a call. */
  readonly lost: readonly string[];
  /** The messages of each answered request as they were sent, by session. */
  readonly prompts: ReadonlyMap<string, readonly string[]>;
  /** After this number of answers, every request is answered with status 503. */
  downAt: number;
  close(): Promise<void>;
}

/**
 * Starts a server on loopback. Its models, by default `m`, answer with `turn`. Without it, the server's own model does the task of all
 * sessions (task.ts).
 */
export async function startChat(
  server: Partial<ChatServer>,
  turn?: Turns,
  models: readonly string[] = [(turn === undefined ? server.model : undefined) ?? "m"],
): Promise<Double> {
  if (server.start) return server.start(turn, models);
  const requests: Json[] = [];
  const refusals: string[] = [];
  const sessions = new Sessions();

  const answer = (response: ServerResponse, body: Json): void => {
    requests.push(body);
    const refused = server.refusal?.(body);
    if (refused) {
      refusals.push(JSON.stringify(refused.body));
      return sendJson(response, refused.status, refused.body);
    }
    sessions.lost.push(...(server.lost?.(body) ?? []));
    const conversation = readChat(body);
    const step = turn === undefined ? sessions.next(conversation, body["messages"]) : stepOf(turn, body);
    const ids = step.calls.map((_, index) => callId(conversation, index, server.name));
    if (body["stream"] !== true) return sendJson(response, 200, wholeAnswer(server, step, ids, body));
    response.writeHead(200, { "content-type": "text/event-stream" }).end(streamOf(server, step, ids, body));
  };

  const { url, close } = await listen((request, response) => {
    void readBody(request).then((text) => {
      const { url = "", method } = request;
      if (double.turns >= double.downAt)
        return sendJson(response, 503, { error: { message: "overloaded", type: "server_error" } });
      const { created = 1_760_000_000, owner = "t", listed } = server;
      if (url === "/v1/models")
        return sendJson(response, 200, {
          object: "list",
          data: models.map((id) => ({ id, object: "model", created, owned_by: owner, ...listed })),
        });
      const other = server.others?.[url];
      if (other !== undefined) return sendJson(response, 200, other);
      if (!/^\/v1\/(?:chat\/)?completions$/.test(url) || method !== "POST")
        return sendJson(response, 404, { error: "not found" });
      answer(response, JSON.parse(text) as Json);
    });
  });
  const double = sessionDouble({ url: `${url}/v1`, requests, refusals, close }, sessions);
  return double;
}

/** What the doubles of all APIs have in common. `turns`: how many requests were answered, where `requests` has only these. */
export function sessionDouble(
  server: Pick<Double, "url" | "requests" | "refusals" | "close">,
  { lost, prompts }: Sessions,
  turns = (): number => server.requests.length - server.refusals.length,
): Double {
  return {
    ...server,
    get turns() {
      return turns();
    },
    lost,
    prompts,
    downAt: Number.POSITIVE_INFINITY,
  };
}

export function stepOf(turn: Turns, body: Json): Step {
  const made = typeof turn === "function" ? turn(body) : turn;
  return typeof made === "string" ? { text: made, calls: [] } : { calls: [], ...made };
}

/** Nine letters and digits, as Mistral's: the shortest that any server makes. The same call of a session has the same id in each retry. */
function callId({ userText, results }: Conversation, index: number, server = ""): string {
  const parts = JSON.stringify([placeOf(userText), results + index, server]);
  return createHmac("sha256", "id").update(parts).digest("hex").slice(0, 9);
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += String(piece);
  return text;
}

/* Requests */

export function objectOf(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

/** The objects of a list. */
export function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(objectOf) : [];
}

/** The text of a content that is a string or a list. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("");
}

export function callsOfMessage(message: Json): TaskCall[] {
  return listOf(message["tool_calls"]).map((call) => {
    const { name, arguments: text } = objectOf(call["function"]);
    return { name: String(name), input: objectOf(typeof text === "string" ? JSON.parse(text || "{}") : text) };
  });
}

/** The place of the user's last text about the task. */
export function lastUserText(messages: readonly Json[]): number {
  return messages.findLastIndex(({ role, content }) => role === "user" && textOf(content).includes("Session "));
}

export function readChat(body: Json): Conversation {
  const messages = listOf(body["messages"]);
  const last = lastUserText(messages);
  const since = messages.slice(last + 1);
  return {
    userText: textOf(messages[last]?.["content"]),
    calls: since.flatMap(callsOfMessage),
    results: since.filter(({ role }) => role === "tool").length,
  };
}

/** The messages with calls, each with its place; `since`: those after the user's last text. */
export function callMessages(body: Json): { message: Json; at: number; since: boolean }[] {
  const messages = listOf(body["messages"]);
  const last = lastUserText(messages);
  return messages.flatMap((message, at) =>
    message["role"] === "assistant" && listOf(message["tool_calls"]).length > 0
      ? [{ message, at, since: at > last }]
      : [],
  );
}

/** An error in OpenAI's form. */
export function refused(message: string, status = 400): Refusal {
  return { status, body: { error: { message, type: "invalid_request_error", param: null, code: null } } };
}

/** Signs values with a key of one double. */
export interface Signer {
  sign(...parts: readonly unknown[]): string;
  isValid(value: unknown, ...parts: readonly unknown[]): boolean;
}

let signers = 0;

/** Each signer has a key of its own. */
export function signer(name: string): Signer {
  const key = `${name}-${++signers}`;
  const sign = (...parts: readonly unknown[]): string =>
    createHmac("sha512", key).update(JSON.stringify(parts)).digest("base64");
  return { sign, isValid: (value, ...parts) => value === sign(...parts) };
}

/* Answers */

/** Cuts a text into pieces, as streams do. */
export function pieces(text: string): readonly string[] {
  return text.match(/.{1,9}/gsu) ?? [];
}

function usageOf(server: Partial<ChatServer>, body: Json): Json {
  const characters = JSON.stringify([body["messages"], body["tools"]]).length;
  const tokens = server.promptTokens?.(body) ?? Math.ceil(characters / 4);
  return { prompt_tokens: tokens, completion_tokens: 5, total_tokens: tokens + 5 };
}

function envelope({ model }: Json): Json {
  return { id: "chatcmpl-1", created: 1_760_000_000, model };
}

function finishOf({ calls }: Step): string {
  return calls.length > 0 ? "tool_calls" : "stop";
}

function wholeAnswer(server: Partial<ChatServer>, step: Step, ids: readonly string[], body: Json): Json {
  const calls = step.calls.map((call, index) => ({
    id: ids[index],
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.input) },
    ...server.callMembers?.(call, index),
  }));
  const message = {
    role: "assistant",
    content: server.content ? server.content(step) : (step.text ?? null),
    ...server.message?.(step),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const choice = { index: 0, message, finish_reason: finishOf(step) };
  return { ...envelope(body), object: "chat.completion", choices: [choice], usage: usageOf(server, body) };
}

function streamOf(server: Partial<ChatServer>, step: Step, ids: readonly string[], body: Json): string {
  const chunk = (choices: readonly Json[], more: Json = {}): string =>
    `data: ${JSON.stringify({ ...envelope(body), object: "chat.completion.chunk", choices, ...more })}\n\n`;
  const deltas: Json[] = [{ role: "assistant", content: "" }, ...(server.deltas?.(step) ?? [])];
  for (const content of pieces(step.text ?? "")) deltas.push({ content });
  for (const [index, call] of step.calls.entries()) {
    const text = JSON.stringify(call.input);
    const head = { index, id: ids[index], type: "function", ...server.callMembers?.(call, index) };
    if (server.wholeCalls) deltas.push({ tool_calls: [{ ...head, function: { name: call.name, arguments: text } }] });
    else {
      deltas.push({ tool_calls: [{ ...head, function: { name: call.name, arguments: "" } }] });
      for (const piece of pieces(text)) deltas.push({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  const usage = { usage: usageOf(server, body) };
  const isRequested = objectOf(body["stream_options"])["include_usage"] === true;
  return [
    ...deltas.map((delta) => chunk([{ index: 0, delta, finish_reason: null }])),
    chunk([{ index: 0, delta: {}, finish_reason: finishOf(step) }], server.reportsUsage ? usage : {}),
    isRequested && !server.reportsUsage ? chunk([], usage) : "",
    "data: [DONE]\n\n",
  ].join("");
}
