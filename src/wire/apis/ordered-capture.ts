import { isObject } from "../core/json.ts";
import type { JsonObject } from "../core/json.ts";
import { chatChunk, chatCompletion } from "./chat/schema.ts";
import { obfuscate } from "./chat/chat-envelope.ts";
import { completion } from "./completions/schema.ts";
import { randomBase62 } from "./ids.ts";
import { JsonText, jsonText, rustFloatText } from "./json-text.ts";
import type { JsonValue } from "./json-text.ts";
import { inWireOrder, memberSince } from "./members.ts";
import { message, streamEvent } from "./messages/schema.ts";
import { messageEventText, padding, pingText } from "./messages/write-stream.ts";
import { exact } from "./profile.ts";
import { bodyNumber, pythonJson, streamNumber } from "./responses/form.ts";
import type { NumberForm } from "./responses/form.ts";
import { clientJsonMembers, floatMembers, harmMembers, harms, response, wireOrder } from "./responses/schema.ts";
import { responseEvents } from "./responses/event-schema.ts";
import { SseFrameReader } from "./sse/frame-reader.ts";
import { doneText } from "./sse-text.ts";
import { RepairLog } from "./tolerant/repairs.ts";

/** The APIs whose captures can be repaired. */
export const capturedApis = ["chat", "completions", "responses", "messages"] as const;
export type CapturedApi = (typeof capturedApis)[number];

/** The API of a capture, by members that only its answers have. */
export function apiOfCapture(capture: string): CapturedApi {
  if (/"(type|object)"\s*:\s*"response(\.\w+)*"/.test(capture)) return "responses";
  if (/"type"\s*:\s*"(message_start|content_block_(start|delta)|message)"/.test(capture)) return "messages";
  return /"object"\s*:\s*"text_completion"/.test(capture) ? "completions" : "chat";
}

const generated: ReadonlySet<unknown> = new Set([
  "",
  "chat.completion",
  "chat.completion.chunk",
  "text_completion",
  "response",
  "error",
]);

/**
 * Whether a capture is the body of an endpoint that generates nothing, and no error: models, embeddings, counts of tokens, batches and
 * their results, compaction, stored items, deletions, the state of a response in the background, Ollama's lists.
 */
export function isOfOtherEndpoint(capture: string): boolean {
  if (/^\s*\{\s*"custom_id"/.test(capture)) return true;
  const body = isBody(capture) ? parsed(capture) : undefined;
  if (!body) return false;
  const { object, type, data, models, embedding, embeddings, background, status } = body;
  // A response in the background that is still generated has not failed.
  if (object === "response" && background === true && (status === "queued" || status === "in_progress")) return true;
  if ("choices" in body || "error" in body) return false;
  if (typeof object === "string" && !generated.has(object)) return true;
  if (type === "model" || type === "completion") return true;
  if (typeof type === "string" && type.startsWith("message_batch")) return true;
  const lists = [data, models, embedding, embeddings].some((list) => Array.isArray(list));
  return lists || ("input_tokens" in body && !("type" in body));
}

/** Returns the JSON of a captured stream's events, or of a body; `undefined` for an event that is no JSON object. */
export function capturedEvents(capture: string): readonly (JsonObject | undefined)[] {
  if (isBody(capture)) return [parsed(capture)];
  const events: (JsonObject | undefined)[] = [];
  const sink = {
    named: true,
    frame(data: string) {
      if (data.trim() !== "" && data.trim() !== "[DONE]") events.push(parsed(data));
    },
  };
  const reader = new SseFrameReader(sink, new RepairLog(), Number.POSITIVE_INFINITY);
  reader.push(capture);
  reader.end();
  return events;
}

/** Whether a capture is a JSON body, not a stream. */
export function isBody(capture: string): boolean {
  return /^\s*\{/.test(capture) && parsed(capture) !== undefined;
}

function parsed(json: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** How a vendor prints the JSON of its answers. */
interface Printing {
  body(answer: JsonObject, request: JsonObject): string;
  /** Returns a printer for the events of one stream, in order. `events`: all of them. */
  stream(events: readonly JsonObject[], request: JsonObject, random: () => number): (event: JsonObject) => string;
  /** The end mark of a stream. */
  readonly end: string;
}

/**
 * Prints the JSON of a captured answer again as its vendor prints it: the order of members, numbers, white space, obfuscation and padding.
 * No member is added, removed or changed, so the form keeps its date. `undefined` for a capture that is not JSON. `request`: the body of the
 * request, if known: what an answer repeats of it keeps its order. `random`: as in `RepairOptions`.
 */
export function orderedCapture(
  capture: string,
  { api, request, random }: { readonly api: CapturedApi; readonly request?: unknown; readonly random: () => number },
): string | undefined {
  const { body, stream, end } = printing[api];
  const asked = isObject(request) ? request : {};
  const events = capturedEvents(capture);
  if (!events.every((event) => event !== undefined)) return undefined;
  if (isBody(capture)) return events.map((answer) => body(answer, asked)).join("");
  // Some recorders add line ends to the two after the last event.
  const added = capture.slice(capture.trimEnd().length).replaceAll("\r", "").slice(2);
  return events.map(stream(events, asked, random)).join("") + end + added;
}

const textDelta = responseEvents.get("response.output_text.delta") ?? response;
const serdeFloat = (value: number): JsonText => new JsonText(rustFloatText(value));

const printing: Readonly<Record<CapturedApi, Printing>> = {
  chat: {
    body: (answer) => `${jsonText(inWireOrder(chatCompletion, answer, serdeFloat) as JsonValue, 2)}\n`,
    stream(events, request, random) {
      const obfuscates = isObfuscated(events, request, memberSince(chatChunk, "obfuscation"));
      const announcesCalls = events.some(announcesSeveralCalls);
      return (event) => {
        const { obfuscation: _, ...members } = event;
        const ordered = inWireOrder(chatChunk, members, serdeFloat) as JsonObject;
        const isOfCalls = announcesCalls && (hasCalls(event) || announcesSeveralCalls(event));
        const json = jsonText((isOfCalls ? moved(ordered, "usage", "choices") : ordered) as JsonValue);
        return `data: ${obfuscates ? obfuscate(json.slice(0, -1), random) : json}\n\n`;
      };
    },
    end: doneText,
  },
  completions: {
    body: (answer) => `${jsonText(inWireOrder(completion, answer, serdeFloat) as JsonValue, 2)}\n`,
    stream: () => (event) => {
      const ordered = inWireOrder(completion, event, serdeFloat) as JsonObject;
      const isLast = choicesOf(event).length === 0;
      const printed = isLast ? moved(ordered, "usage", "choices") : moved(ordered, "choices", "model");
      return `data: ${jsonText(printed as JsonValue)}\n\n`;
    },
    end: doneText,
  },
  responses: {
    body: (answer, request) => pythonJson(inResponsesOrder("", answer, bodyNumber, request)),
    stream(events, request, random) {
      const obfuscates = isObfuscated(events, request, memberSince(textDelta, "obfuscation"));
      const logprobs = new Map(events.flatMap(spokenLogprobs));
      return (event) => {
        const { obfuscation: _, ...members } = withRounded(event, logprobs) as JsonObject;
        const { type, delta } = members;
        const isHidden = obfuscates && "obfuscation" in (responseEvents.get(type)?.shape ?? {});
        const shown =
          isHidden && typeof delta === "string"
            ? { ...members, obfuscation: randomBase62(-[...delta].length & 15, random) }
            : members;
        const json = jsonText(inResponsesOrder("", shown, streamNumber, { response: request }));
        return `event: ${String(type)}\ndata: ${json}\n\n`;
      };
    },
    end: "",
  },
  messages: {
    body: (answer) => JSON.stringify(inWireOrder(message, answer)),
    stream: (_events, _request, random) => (event) => {
      const type = String(event["type"]);
      if (type === "ping") return pingText;
      const json = JSON.stringify(inWireOrder(streamEvent, event));
      return messageEventText(type, json.slice(0, -1), padding(exact, random));
    },
    end: "",
  },
};

/** Whether the deltas of a stream had `obfuscation`, which a capture may have lost. */
function isObfuscated(events: readonly JsonObject[], { stream_options: options }: JsonObject, since: number): boolean {
  if (events.some((event) => "obfuscation" in event)) return true;
  const [first = {}] = events;
  const { created_at: time = first["created"] } = isObject(first["response"]) ? first["response"] : {};
  return Number(time) >= since && !(isObject(options) && options["include_obfuscation"] === false);
}

function choicesOf({ choices }: JsonObject): readonly JsonObject[] {
  return Array.isArray(choices) ? choices.filter(isObject) : [];
}

/** The first delta of a choice with several calls. Their chunks have `usage` before `choices` (recorded 154 of 154). */
function announcesSeveralCalls(chunk: JsonObject): boolean {
  return choicesOf(chunk).some(
    ({ delta }) =>
      isObject(delta) && Object.keys(delta).toSorted().join() === "content,role" && delta["content"] === null,
  );
}

function hasCalls(chunk: JsonObject): boolean {
  return choicesOf(chunk).some(({ delta }) => isObject(delta) && "tool_calls" in delta);
}

/** Returns the object with the member `name` before the member `before`, if it has both. */
function moved(value: JsonObject, name: string, before: string): JsonObject {
  if (!(name in value && before in value)) return value;
  const others = Object.entries(value).filter(([other]) => other !== name);
  const at = others.findIndex(([other]) => other === before);
  return Object.fromEntries(others.toSpliced(at, 0, [name, value[name]]));
}

/**
 * Returns a value of the Responses API with its members in OpenAI's order (`wireOrder`), whether its schema describes them or not. `name`:
 * of the member that has the value. `request`: its counterpart in the request, whose JSON keeps its own order where the response repeats it.
 */
function inResponsesOrder(name: string, value: unknown, number: NumberForm, request: unknown): JsonValue {
  if (typeof value === "number" && (floatMembers.includes(name) || name === "score_threshold"))
    return new JsonText(number(value));
  if (Array.isArray(value)) {
    return value.map((element: unknown, index) =>
      inResponsesOrder(name, element, number, counterpart(element, index, request)),
    );
  }
  if (!isObject(value)) return value as JsonValue;
  if ((clientJsonMembers as readonly string[]).includes(name)) {
    const ordered = alike(value, request) as { readonly [name: string]: JsonValue };
    // The client names the variables; what they contain is OpenAI's.
    if (name !== "variables") return ordered;
    const variables = Object.entries(ordered).map(([key, part]) => [
      key,
      inResponsesOrder("", part, number, undefined),
    ]);
    return Object.fromEntries(variables) as JsonValue;
  }
  const asked = isObject(request) ? request : {};
  const isHarms = (harmMembers as readonly string[]).includes(name);
  const names = isHarms
    ? harms.filter((harm) => harm in value)
    : wireOrder(Object.keys(value), value["object"] === "response");
  return Object.fromEntries(
    names.map((member) => {
      const inner = value[member];
      const isScore = name === "category_scores" && typeof inner === "number";
      const printed = isScore ? new JsonText(number(inner)) : inResponsesOrder(member, inner, number, asked[member]);
      return [member, printed];
    }),
  );
}

/** The log probabilities of a text that has ended, by the id of its item and the index of its part. */
function spokenLogprobs({
  type,
  item_id: id,
  content_index: index,
  logprobs,
}: JsonObject): [string, readonly unknown[]][] {
  return type === "response.output_text.done" && Array.isArray(logprobs)
    ? [[`${String(id)} ${String(index)}`, logprobs]]
    : [];
}

/**
 * Returns an event, item or response with the log probabilities of its items rounded again from those of their texts. OpenAI rounds them, and
 * printing again may have lost the sign of a zero.
 */
function withRounded(value: unknown, logprobs: ReadonlyMap<string, readonly unknown[]>): unknown {
  if (Array.isArray(value)) return value.map((element: unknown) => withRounded(element, logprobs));
  if (logprobs.size === 0 || !isObject(value)) return value;
  const { id, content } = value;
  if (Array.isArray(content)) {
    const parts = content.map((part: unknown, index) => {
      const own = logprobs.get(`${String(id)} ${index}`);
      const shown = isObject(part) && Array.isArray(part["logprobs"]) ? part["logprobs"].length : -1;
      return isObject(part) && own?.length === shown ? { ...part, logprobs: own.map(roundedToken) } : part;
    });
    return { ...value, content: parts };
  }
  const inner = ["item", "response", "output"].filter((name) => name in value);
  return { ...value, ...Object.fromEntries(inner.map((name) => [name, withRounded(value[name], logprobs)])) };
}

function roundedToken(token: unknown): unknown {
  if (!isObject(token)) return token;
  const { logprob, top_logprobs: top } = token;
  return {
    ...token,
    ...(typeof logprob === "number" && { logprob: Number(logprob.toFixed(6)) }),
    ...(Array.isArray(top) && { top_logprobs: top.map(roundedToken) }),
  };
}

/** Returns the element of a list in the request that an element of the response repeats: a tool by its name, others by their index. */
function counterpart(element: unknown, index: number, request: unknown): unknown {
  if (!Array.isArray(request)) return undefined;
  const name = isObject(element) ? element["name"] : undefined;
  const named: unknown = request.find(
    (other: unknown) => isObject(other) && name !== undefined && other["name"] === name,
  );
  return named ?? (request[index] as unknown);
}

/** Returns `value` with its members in the order of `model`, followed by those that `model` does not have. */
function alike(value: unknown, model: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((element: unknown, index) => alike(element, Array.isArray(model) ? model[index] : undefined));
  }
  if (!isObject(value)) return value;
  const others: JsonObject = isObject(model) ? model : {};
  const known = Object.keys(others).filter((name) => name in value);
  const added = Object.keys(value).filter((name) => !(name in others));
  return Object.fromEntries([...known, ...added].map((name) => [name, alike(value[name], others[name])]));
}
