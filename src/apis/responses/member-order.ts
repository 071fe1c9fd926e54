import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { JsonText } from "../json-text.ts";
import type { JsonValue } from "../json-text.ts";
import type { NumberForm } from "./number-form.ts";

/** Members that stand before those in alphabetical order, wherever they are. */
const first = ["id", "object", "created_at", "type", "status"];
/** Floats, which are written with a point even where they are whole. */
const floats: ReadonlySet<string> = new Set([
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "logprob",
  "score_threshold",
]);
/** JSON of the client's own, whose order is the client's. */
const clients: ReadonlySet<string> = new Set(["parameters", "schema", "input_schema", "output_schema", "metadata"]);
/** Kinds of harm are listed in the order of OpenAI's moderation. Source: a recording of 2026-07. */
const byHarm: ReadonlySet<string> = new Set(["categories", "category_applied_input_types", "category_scores"]);
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

/** 2025-05-01T00:00:00Z: items of responses before have orders of their own. Unix seconds. */
const alphabetSince = 1_746_057_600;
const earlyOrders: ReadonlyMap<unknown, readonly string[]> = new Map(
  Object.entries({
    message: ["type", "id", "status", "role", "content"],
    output_text: ["type", "text", "annotations"],
    function_call: ["type", "id", "call_id", "name", "arguments", "status"],
  }),
);

/**
 * A value of a recorded response with its members in OpenAI's order: a few first, the rest by the alphabet, a response's metadata last.
 * Source: every object of 1,100 recordings of 2025 and 2026, but for three of background responses. `asked`: the request, whose own
 * JSON has its own order.
 */
export function inOrder(value: unknown, number: NumberForm, asked: unknown): JsonValue {
  const created = isObject(value) ? value["created_at"] : undefined;
  const isEarly = typeof created === "number" && created < alphabetSince;
  return ordered("", value, { number, isEarly }, asked);
}

interface Form {
  readonly number: NumberForm;
  readonly isEarly: boolean;
}

function ordered(name: string, value: unknown, form: Form, asked: unknown): JsonValue {
  if (typeof value === "number" && floats.has(name)) return new JsonText(form.number(value));
  if (Array.isArray(value)) {
    return value.map((element: unknown, index) => ordered(name, element, form, counterpart(element, index, asked)));
  }
  if (!isObject(value)) return value as JsonValue;
  if (clients.has(name)) return alike(value, asked) as JsonValue;
  if (byHarm.has(name)) return harmsInOrder(name, value, form);
  const names = namesInOrder(value, form);
  const others = isObject(asked) ? asked : {};
  return Object.fromEntries(names.map((member) => [member, ordered(member, value[member], form, others[member])]));
}

function namesInOrder(value: JsonObject, { isEarly }: Form): string[] {
  const own = isEarly ? earlyOrders.get(value["type"]) : undefined;
  const begin = (own ?? first).filter((member) => member in value);
  const rest = Object.keys(value)
    .filter((member) => !begin.includes(member))
    .sort();
  if (value["object"] !== "response" || !rest.includes("metadata")) return [...begin, ...rest];
  return [...begin, ...rest.filter((member) => member !== "metadata"), "metadata"];
}

/** The element of a list in the request that an element of the response's repeats: a tool by its name, else the one at its place. */
function counterpart(element: unknown, index: number, asked: unknown): unknown {
  if (!Array.isArray(asked)) return undefined;
  const name = isObject(element) ? element["name"] : undefined;
  const named: unknown = asked.find(
    (other: unknown) => isObject(other) && name !== undefined && other["name"] === name,
  );
  return named ?? (asked[index] as unknown);
}

/** `value` with its members in the order of `model`, those that it has not behind. */
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

function harmsInOrder(name: string, value: JsonObject, { number }: Form): JsonValue {
  const names = [
    ...harms.filter((harm) => harm in value),
    ...Object.keys(value).filter((harm) => !harms.includes(harm)),
  ];
  const shown = (score: unknown): JsonValue =>
    name === "category_scores" && typeof score === "number" ? new JsonText(number(score)) : (score as JsonValue);
  return Object.fromEntries(names.map((harm) => [harm, shown(value[harm])]));
}
