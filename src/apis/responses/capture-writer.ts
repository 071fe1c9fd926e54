import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { randomBase62 } from "../ids.ts";
import { JsonText, jsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import { bodyNumber, pythonJson, streamNumber } from "./form.ts";
import type { NumberForm } from "./form.ts";
import { clientJsonMembers, floatMembers, harmMembers, wireOrder } from "./schema.ts";

/** 2025-08-06T00:00:00Z: no recorded stream before has `obfuscation`, every one since does. Unix seconds. */
const obfuscationSince = 1_754_438_400;
/** 2026-01-01T00:00:00Z: since then the members of events are in alphabetical order. Unix seconds. */
const eventAlphabetSince = 1_767_225_600;

/** The order of the members of events before that. */
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

/** Writes the events of a recorded answer of OpenAI as OpenAI writes them. `request`: the body of the request. */
export function writeCapturedEvents(events: readonly JsonObject[], request: unknown, random: () => number): string {
  const form = formOf(events, request);
  const logprobs = new Map<string, readonly unknown[]>();
  let text = "";
  for (const event of events) {
    const { item_id: id, content_index: index } = event;
    if (event["type"] === "response.output_text.done" && Array.isArray(event["logprobs"])) {
      logprobs.set(`${String(id)} ${String(index)}`, event["logprobs"]);
    }
    const members = membersOf(event, request, logprobs);
    if (form.obfuscated && typeof event["delta"] === "string" && event["type"] !== "response.refusal.delta") {
      members["obfuscation"] = randomBase62(-[...event["delta"]].length & 15, random);
    } else delete members["obfuscation"];
    text += `event: ${String(event["type"])}\ndata: ${jsonText(inEventOrder(members, form))}\n\n`;
  }
  return text;
}

/** Writes the body of a recorded answer of OpenAI. */
export function writeCapturedBody(response: JsonObject, request: unknown): string {
  return pythonJson(inOrder(response, bodyNumber, request));
}

interface CapturedForm {
  readonly obfuscated: boolean;
  readonly alphabetical: boolean;
  /** Texts have no log probabilities: before July 2025. */
  readonly early: boolean;
}

function formOf(events: readonly JsonObject[], request: unknown): CapturedForm {
  const created = events.map(({ response }) => (isObject(response) ? response["created_at"] : undefined)).find(Number);
  const time = typeof created === "number" ? created : 0;
  const options = isObject(request) ? request["stream_options"] : undefined;
  const early = events.some((event) => event["type"] === "response.output_text.delta" && !("logprobs" in event));
  return {
    obfuscated:
      events.some((event) => "obfuscation" in event) ||
      (time >= obfuscationSince && !early && !(isObject(options) && options["include_obfuscation"] === false)),
    alphabetical: time >= eventAlphabetSince,
    early,
  };
}

type Members = { [name: string]: JsonValue };

function membersOf(event: JsonObject, request: unknown, logprobs: ReadonlyMap<string, readonly unknown[]>): Members {
  const members: Members = {};
  for (const [name, value] of Object.entries(event)) {
    const whole = name === "item" || name === "response" ? withRounded(value, logprobs) : value;
    members[name] = inOrder(whole, streamNumber, name === "response" ? request : undefined);
  }
  return members;
}

/**
 * The log probabilities of whole items are those of the deltas, rounded. They are rounded again here: another program that has printed
 * the capture may have lost the sign of a zero.
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
  // Before May 2025 events had no number. Where one was added, it is last.
  const isEarly = early && ("content_index" in rest || !alphabetical);
  if (!alphabetical || isEarly) {
    const all: Members = isEarly && isObject(rest["part"]) ? { ...members, part: earlyPart(rest["part"]) } : members;
    const names = olderOrder.filter((name) => name in all && !(isEarly && name === "sequence_number"));
    if (isEarly && "sequence_number" in all) names.push("sequence_number");
    const others = Object.keys(all).filter((name) => !olderOrder.includes(name));
    return Object.fromEntries([...names, ...others].map((name) => [name, all[name] ?? null]));
  }
  if (response !== undefined) return { type: type ?? null, response, sequence_number: number };
  const names = [
    "type",
    ...Object.keys(members)
      .filter((name) => name !== "type")
      .toSorted(),
  ];
  return Object.fromEntries(names.map((name) => [name, members[name] ?? null]));
}

function earlyPart(part: JsonObject): JsonValue {
  const { type, text, ...rest } = part as { readonly [name: string]: JsonValue };
  return { type, text, ...rest };
}

/** The order in which a moderation lists kinds of harm. Source: a recording of 2026-07. */
const harms = [
  "harassment",
  "harassment/threatening",
  "sexual",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm/intent",
  "self-harm/instructions",
  "self-harm",
  "sexual/minors",
  "violence",
  "violence/graphic",
];

/** 2025-05-01T00:00:00Z: items of earlier responses have orders of their own. Unix seconds. */
const alphabetSince = 1_746_057_600;
const earlyOrders: ReadonlyMap<unknown, readonly string[]> = new Map(
  Object.entries({
    message: ["type", "id", "status", "role", "content"],
    output_text: ["type", "text", "annotations"],
    function_call: ["type", "id", "call_id", "name", "arguments", "status"],
  }),
);

/**
 * Returns a value of a recorded response with its members in OpenAI's order. `request`: the body of the request, whose JSON keeps its
 * own order where the response repeats it.
 */
function inOrder(value: unknown, number: NumberForm, request: unknown): JsonValue {
  const created = isObject(value) ? value["created_at"] : undefined;
  const isEarly = typeof created === "number" && created < alphabetSince;
  return ordered("", value, { number, isEarly }, request);
}

interface ValueForm {
  readonly number: NumberForm;
  readonly isEarly: boolean;
}

function ordered(name: string, value: unknown, form: ValueForm, request: unknown): JsonValue {
  if (typeof value === "number" && (floatMembers.includes(name) || name === "score_threshold"))
    return new JsonText(form.number(value));
  if (Array.isArray(value)) {
    return value.map((element: unknown, index) => ordered(name, element, form, counterpart(element, index, request)));
  }
  if (!isObject(value)) return value as JsonValue;
  if ((clientJsonMembers as readonly string[]).includes(name)) return alike(value, request) as JsonValue;
  if ((harmMembers as readonly string[]).includes(name)) return harmsInOrder(name, value, form);
  const names = namesInOrder(value, form);
  const others = isObject(request) ? request : {};
  return Object.fromEntries(names.map((member) => [member, ordered(member, value[member], form, others[member])]));
}

function namesInOrder(value: JsonObject, { isEarly }: ValueForm): string[] {
  const names = Object.keys(value);
  const early = isEarly ? earlyOrders.get(value["type"]) : undefined;
  if (early === undefined) return wireOrder(names, value["object"] === "response");
  return [...early.filter((name) => name in value), ...names.filter((name) => !early.includes(name)).toSorted()];
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

function harmsInOrder(name: string, value: JsonObject, { number }: ValueForm): JsonValue {
  const names = [
    ...harms.filter((harm) => harm in value),
    ...Object.keys(value).filter((harm) => !harms.includes(harm)),
  ];
  const shown = (score: unknown): JsonValue =>
    name === "category_scores" && typeof score === "number" ? new JsonText(number(score)) : (score as JsonValue);
  return Object.fromEntries(names.map((harm) => [harm, shown(value[harm])]));
}
