import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { randomBase62 } from "../ids.ts";
import { jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import { inOrder } from "./member-order.ts";
import { bodyNumber, streamNumber } from "./number-form.ts";
import { pythonJson } from "./python-json.ts";

/** 2025-08-06T00:00:00Z: no recorded stream before has `obfuscation`, every one since does. Unix seconds. */
const obfuscationSince = 1_754_438_400;
/** 2026-01-01T00:00:00Z: since then an event's members stand by the alphabet. Unix seconds. */
const alphabetSince = 1_767_225_600;

/** The members of events before that. */
const olderOrder = [
  "type",
  "sequence_number",
  "response",
  "item_id",
  "output_index",
  "content_index",
  "summary_index",
  "annotation_index",
  "item",
  "part",
  "delta",
  "text",
  "arguments",
  "input",
  "refusal",
  "annotation",
  "logprobs",
  "obfuscation",
];

/** The events of a recorded answer of OpenAI's own, written as OpenAI writes them. `asked`: the request. */
export function writeCapturedEvents(events: readonly JsonObject[], asked: unknown, random: () => number): string {
  const form = formOf(events, asked);
  const logprobs = new Map<string, readonly unknown[]>();
  let text = "";
  for (const event of events) {
    const { item_id: id, content_index: index } = event;
    if (event["type"] === "response.output_text.done" && Array.isArray(event["logprobs"])) {
      logprobs.set(`${String(id)} ${String(index)}`, event["logprobs"]);
    }
    const members = membersOf(event, asked, logprobs);
    if (form.obfuscated && typeof event["delta"] === "string" && event["type"] !== "response.refusal.delta") {
      members["obfuscation"] = randomBase62(-[...event["delta"]].length & 15, random);
    } else delete members["obfuscation"];
    text += `event: ${String(event["type"])}\ndata: ${jsonText(inEventOrder(members, form))}\n\n`;
  }
  return text;
}

/** The body of a recorded answer of OpenAI's own. */
export function writeCapturedBody(response: JsonObject, asked: unknown): string {
  return pythonJson(inOrder(response, bodyNumber, asked));
}

interface CapturedForm {
  readonly obfuscated: boolean;
  readonly alphabetical: boolean;
  /** Texts have no log probabilities: older than July 2025. */
  readonly early: boolean;
}

function formOf(events: readonly JsonObject[], asked: unknown): CapturedForm {
  const created = events.map(({ response }) => (isObject(response) ? response["created_at"] : undefined)).find(Number);
  const time = typeof created === "number" ? created : 0;
  const options = isObject(asked) ? asked["stream_options"] : undefined;
  const early = events.some((event) => event["type"] === "response.output_text.delta" && !("logprobs" in event));
  return {
    obfuscated:
      events.some((event) => "obfuscation" in event) ||
      (time >= obfuscationSince && !early && !(isObject(options) && options["include_obfuscation"] === false)),
    alphabetical: time >= alphabetSince,
    early,
  };
}

type Members = { [name: string]: JsonValue };

function membersOf(event: JsonObject, asked: unknown, logprobs: ReadonlyMap<string, readonly unknown[]>): Members {
  const members: Members = {};
  for (const [name, value] of Object.entries(event)) {
    const whole = name === "item" || name === "response" ? withRounded(value, logprobs) : value;
    members[name] = inOrder(whole, streamNumber, name === "response" ? asked : undefined);
  }
  return members;
}

/**
 * The log probabilities of whole items are those of the deltas, rounded. They are rounded anew: the sign of a zero is lost where a
 * capture was printed by anything but OpenAI.
 */
function withRounded(value: unknown, logprobs: ReadonlyMap<string, readonly unknown[]>): unknown {
  if (logprobs.size === 0 || !isObject(value)) return value;
  const output = value["output"];
  if (Array.isArray(output)) return { ...value, output: output.map((item: unknown) => withRounded(item, logprobs)) };
  const { id, content } = value;
  if (!Array.isArray(content)) return value;
  return {
    ...value,
    content: content.map((part: unknown, index) => {
      const own = logprobs.get(`${String(id)} ${index}`);
      const shown = isObject(part) && Array.isArray(part["logprobs"]) ? part["logprobs"].length : 0;
      return isObject(part) && own && shown === own.length ? { ...part, logprobs: own.map(rounded) } : part;
    }),
  };
}

function rounded(token: unknown): unknown {
  if (!isObject(token)) return token;
  const { logprob, top_logprobs: top } = token;
  return {
    ...token,
    ...(typeof logprob === "number" && { logprob: Number(logprob.toFixed(6)) }),
    ...(Array.isArray(top) && { top_logprobs: top.map(rounded) }),
  };
}

function inEventOrder(members: Members, { alphabetical, early }: CapturedForm): JsonValue {
  const { type, response, sequence_number: number, ...rest } = members;
  // Before May 2025 events had no number; where one was added, it stands last.
  const isEarly = early && ("content_index" in rest || !alphabetical);
  if (!alphabetical || isEarly) {
    const all: Members = isEarly && isObject(rest["part"]) ? { ...members, part: earlyPart(rest["part"]) } : members;
    const names = olderOrder.filter((name) => name in all && !(isEarly && name === "sequence_number"));
    if (isEarly && "sequence_number" in all) names.push("sequence_number");
    const others = Object.keys(all).filter((name) => !olderOrder.includes(name));
    return Object.fromEntries([...names, ...others].map((name) => [name, all[name] ?? null]));
  }
  if (response !== undefined) return { type: type ?? null, response, sequence_number: number };
  const names = Object.keys(members)
    .filter((name) => name !== "type")
    .sort();
  return Object.fromEntries([["type", type ?? null], ...names.map((name) => [name, members[name] ?? null])]);
}

function earlyPart(part: JsonObject): JsonValue {
  const { type, text, ...rest } = part as { readonly [name: string]: JsonValue };
  return { type, text, ...rest };
}
