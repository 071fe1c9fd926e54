import { Accumulator } from "../../wire/core/accumulate.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import { isObject, scalarText } from "../../wire/core/json.ts";
import type { Message, ToolMessage } from "../../wire/core/message.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { InspectedRequest, KeptText, TapeContents, TimedText } from "../../judge/inspect/inspected-request.ts";
import { jsonText, parseJson } from "../parts/json-text.ts";
import { isShort, parsePath } from "./json-tree.ts";

/** A request of any API, as the server parsed it. */
export type ParsedRequest = Omit<GenerationRequest, "passthrough">;

/** The request as the server parsed it; undefined: it did not, or the request is too long to be kept. */
export function parsedRequestOf({ request: { understood } }: InspectedRequest): ParsedRequest | undefined {
  if (!understood || understood.left_out !== undefined) return undefined;
  const parsed: unknown = JSON.parse(understood.text);
  return isObject(parsed) && isObject(parsed["prompt"]) ? (parsed as unknown as ParsedRequest) : undefined;
}

/** The JSON of a body; undefined if there is no body, it is not JSON, or it was not kept completely. */
export function jsonOfBody(body: KeptText | undefined): unknown {
  if (!body || body.left_out !== undefined) return undefined;
  try {
    return parseJson(body.text);
  } catch {
    return undefined;
  }
}

/** A text that was recorded in chunks; undefined: not all of it was kept. */
export function wholeText({ chunks, left_out: leftOut }: TapeContents<TimedText>): string | undefined {
  return leftOut ? undefined : chunks.map(({ text }) => text).join("");
}

/** Members of requests that are shown as messages, tools or texts, in any API. */
const contents: ReadonlySet<string> = new Set([
  "messages",
  "contents",
  "systemInstruction",
  "system_instruction",
  "system",
  "instructions",
  "input",
  "prompt",
  "tools",
  "functions",
  "query",
  "documents",
]);

/** The parameters of a request as the client wrote them. */
export function parametersOf(body: unknown): (readonly [name: string, value: unknown])[] {
  return isObject(body) ? Object.entries(body).filter(([name]) => !contents.has(name)) : [];
}

/** A text of a request that has no messages, such as one that asks for embeddings. */
export interface InputText {
  /** Its path: `input[0]`. */
  readonly path: string;
  /** A string, or a document or token ids in the form of the API. */
  readonly value: unknown;
}

/** The texts of a request that asks for embeddings or a ranking. */
export function inputTextsOf(body: unknown): InputText[] {
  if (!isObject(body)) return [];
  return ["query", "input", "prompt", "documents"].flatMap((name) => {
    const value = body[name];
    if (value === undefined) return [];
    if (!Array.isArray(value) || value.every((item) => typeof item === "number")) return [{ path: name, value }];
    return value.map((item: unknown, at) => ({ path: `${name}[${at}]`, value: item }));
  });
}

/** A longer value is not written as text. In characters of JSON. */
const maxInline = 2000;

export function inputText({ value }: InputText): string {
  if (typeof value === "string") return value;
  // Cohere's documents may be objects with a text.
  const text = isObject(value) ? value["text"] : undefined;
  if (typeof text === "string") return text;
  return isShort(value, maxInline) ? jsonText(value) : "A long value: see JSON.";
}

/** A message with the results of its calls, by the id of the call. */
export interface ReadableMessage {
  readonly message: Message;
  readonly path: string;
  readonly results: ReadonlyMap<string, ToolMessage>;
}

/** The messages, with each result at its call. A result whose call is not there stays a message of its own. */
export function readableMessages(messages: readonly Message[]): ReadableMessage[] {
  const readable: { message: Message; path: string; results: Map<string, ToolMessage> }[] = [];
  /** The results of the calls that have none yet, by the id of the call. */
  const open = new Map<string, Map<string, ToolMessage>>();
  for (const [at, message] of messages.entries()) {
    if (message.role === "tool") {
      const results = open.get(message.toolCallId);
      open.delete(message.toolCallId);
      if (results) {
        results.set(message.toolCallId, message);
        continue;
      }
    }
    const results = new Map<string, ToolMessage>();
    readable.push({ message, path: message.path ?? `messages[${at}]`, results });
    if (message.role !== "assistant" || !Array.isArray(message.content)) continue;
    for (const part of message.content) if (part.type === "tool-call") open.set(part.id, results);
  }
  return readable;
}

/** The answer up to now, from the engine's events; undefined without events, and if they were not kept completely. */
export function answerOf({ events }: InspectedRequest): Generation | undefined {
  if (events.chunks.length === 0 || events.left_out) return undefined;
  const answer = new Accumulator();
  for (const chunk of events.chunks) answer.add(chunk.events);
  return answer.result();
}

/** How long each hosted call of an answer took, in milliseconds, by its id. */
export function hostedTimes({ events }: InspectedRequest): ReadonlyMap<string, number> {
  const begun = new Map<string, number>();
  const times = new Map<string, number>();
  for (const { ms, events: batch } of events.chunks)
    for (const event of batch) {
      if (event.type === "hosted-call-end") begun.set(event.id, ms);
      if (event.type === "hosted-result") times.set(event.id, ms - (begun.get(event.id) ?? ms));
    }
  return times;
}

/** A place in a body that an error of an API names, such as `messages[1].content[0].type`; "": none. */
export function refusedPlace(answer: unknown, body: unknown): string {
  const error = isObject(answer) ? answer["error"] : undefined;
  const { param, message = error } = isObject(error) ? error : { param: undefined };
  // Anthropic's messages begin with the path (`messages.1.content: …`), Ollama's errors are only a text.
  const [, named = ""] = /(?:^|')([a-z_]+[.[][\w.[\]]+)(?=[':])/.exec(scalarText(message)) ?? [];
  const place = typeof param === "string" ? param : named;
  return isObject(body) && Object.hasOwn(body, String(parsePath(place)[0])) ? place : "";
}
