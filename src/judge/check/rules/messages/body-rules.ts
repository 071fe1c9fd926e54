import { membersOf } from "../../../../wire/apis/members.ts";
import {
  errorResponse as errorSchema,
  errorStatuses,
  modelInfo as modelSchema,
  tokenCount,
} from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atName, objectOf, shown } from "../place.ts";
import { vendorOf } from "../exchange.ts";
import type { BodyRule, Violation } from "../rule.ts";
import type { BodyView, Json } from "../view.ts";

const hidden = "errors look like answers";
const misunderstood = "requests are misunderstood";
const errors = "Anthropic's documentation: Errors";
const list = "Anthropic's documentation: List models; recordings 3 of 3";

const isAnthropics = ({ exchange }: BodyView) => vendorOf(exchange) === "Anthropic";
const failed = (view: BodyView) => isAnthropics(view) && view.exchange.response.status >= 400 && isObject(view.value);
const errorOf = (view: BodyView): Json => {
  const { error } = objectOf(view);
  return isObject(error) ? error : {};
};
const answers = (view: BodyView, endpoint: string) =>
  view.exchange.endpoint === endpoint && view.exchange.response.status === 200 && isObject(view.value);
const lists = (view: BodyView) => answers(view, "anthropic-models");

/** Rules about bodies of the Messages API other than messages. Source: 42 recorded errors, 8 counts, 3 answers about models. */
export const messageBodyRules: readonly BodyRule[] = [
  {
    id: "messages/failure-shape",
    severity: "error",
    concern: hidden,
    says: 'An error\'s body is {"type": "error", "error": {type, message}}.',
    source: `${errors}; recordings 42 of 42`,
    breaks: ["official SDKs (an error without its type)", "AI SDK (schema)"],
    judges: "body",
    shown: failed,
    *judge(view) {
      const found = errorShapeProblem(objectOf(view));
      if (found !== undefined) yield atName(view, "error", found);
    },
  },
  {
    id: "messages/failure-type",
    severity: "warning",
    concern: hidden,
    says: "The type of an error is the one of its status: 400 invalid_request_error, 401 authentication_error, 404 not_found_error, 529 overloaded_error, …",
    source: `${errors}; recordings 42 of 42`,
    breaks: ["clients that branch on the type (to wait, to ask again, to ask for a key)"],
    judges: "body",
    // A body alone has no status.
    shown: (view) => failed(view) && view.exchange.response.headers !== null && typeof errorOf(view).type === "string",
    *judge(view) {
      const { type } = errorOf(view);
      const { status } = view.exchange.response;
      const fitting = typeof type === "string" && Object.hasOwn(errorStatuses, type) ? errorStatuses[type] : undefined;
      if (!fitting) yield atName(view, "type", `an error of type ${shown(type)}`);
      else if (!fitting.includes(status)) yield atName(view, "type", `${shown(type)} with status ${status}`);
    },
  },
  {
    id: "messages/failure-overflow",
    severity: "warning",
    concern: hidden,
    says: "An error says that a prompt is too long as `prompt is too long: N tokens > M maximum`.",
    source: "recorded error of 2026-08; Floway #166 (what Claude Code looks for)",
    breaks: ["Claude Code (it compacts its history at these words, and at no others)"],
    judges: "body",
    shown: failed,
    *judge(view) {
      const { message } = errorOf(view);
      const found = typeof message === "string" ? overflowProblem(message) : undefined;
      if (found !== undefined) yield atName(view, "message", found);
    },
  },
  {
    id: "messages/failure-request-id",
    severity: "note",
    concern: "it differs from Anthropic",
    says: "An error names the request: request_id, a string or null.",
    source: "recordings 39 of 39 since 2025-11",
    breaks: [],
    judges: "body",
    shown: failed,
    *judge(view) {
      const { request_id: id } = objectOf(view);
      if (!errorSchema.shape.request_id.safeParse(id).success)
        yield atName(view, "request_id", `request_id ${shown(id)}`);
    },
  },
  {
    id: "messages/request-id",
    severity: "note",
    concern: "it differs from Anthropic",
    says: "Every answer has the header request-id.",
    source: "recordings (some recorders left it out)",
    breaks: [],
    judges: "body",
    shown: (view) => isAnthropics(view) && view.exchange.response.headers !== null,
    *judge({ exchange }) {
      if (!exchange.response.headers?.["request-id"]) yield { start: 0, end: 0, found: "no request-id" };
    },
  },
  {
    id: "messages/count",
    severity: "error",
    concern: "token counts are wrong",
    says: 'count_tokens answers {"input_tokens": N}, a whole number above 0.',
    source: "Anthropic's documentation: Count tokens; recordings 8 of 8",
    breaks: ["official SDKs (undefined)", "agents that measure a prompt before they send it"],
    judges: "body",
    shown: (view) => answers(view, "message-tokens"),
    *judge(view) {
      const { input_tokens: count } = objectOf(view);
      if (!tokenCount.shape.input_tokens.safeParse(count).success)
        yield atName(view, "input_tokens", `input_tokens ${shown(count)}`);
    },
  },
  {
    id: "messages/models",
    severity: "error",
    concern: misunderstood,
    says: "GET /v1/models with anthropic-version answers {data: […], has_more, first_id, last_id}.",
    source: `${list}; LiteLLM #35455`,
    breaks: ["Claude Code (its list of models stays empty)", "official SDKs (they page by it)"],
    judges: "body",
    shown: lists,
    *judge(view) {
      const { data, has_more: more, first_id: first, last_id: last } = objectOf(view);
      if (!Array.isArray(data)) {
        yield atName(view, "data", `data is ${shown(data)}`);
        return;
      }
      if (typeof more !== "boolean") yield atName(view, "has_more", `has_more ${shown(more)}`);
      const ids = data.map((model: unknown) => (isObject(model) ? model.id : undefined));
      if (first !== (ids[0] ?? null)) yield atName(view, "first_id", `first_id ${shown(first)}`);
      if (last !== (ids.at(-1) ?? null)) yield atName(view, "last_id", `last_id ${shown(last)}`);
    },
  },
  {
    id: "messages/model",
    severity: "error",
    concern: misunderstood,
    says: 'A model has type "model", id, display_name and created_at, a time as RFC 3339 has it.',
    source: list,
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judges: "body",
    shown: (view) => lists(view) || answers(view, "anthropic-model"),
    *judge(view) {
      const { data } = objectOf(view);
      const models = lists(view) ? (Array.isArray(data) ? data.filter(isObject) : []) : [objectOf(view)];
      for (const model of models) yield* modelProblems(view, model);
    },
  },
];

function* modelProblems(view: BodyView, model: Json): Generator<Violation> {
  for (const { name, schema, always } of membersOf(modelSchema))
    if (always && !schema.safeParse(model[name]).success) yield atName(view, name, `${name} ${shown(model[name])}`);
}

/** Returns what is wrong with an error, in a stream or as a body, or `undefined`. Source: Anthropic's documentation, Errors. */
export function errorShapeProblem({ type, error }: Json): string | undefined {
  if (type !== "error") return `type ${JSON.stringify(type) ?? "is missing"} next to an error`;
  if (!isObject(error)) return `error is ${JSON.stringify(error) ?? "missing"}`;
  if (typeof error.type !== "string" || error.type === "") return "an error without a type";
  return typeof error.message === "string" && error.message !== "" ? undefined : "an error without a message";
}

/**
 * Returns what is wrong with an error that says that a prompt is too long in other words than those that Claude Code looks for, or
 * `undefined`. Source: Floway #166, which read the words in Claude Code 2.1.207; recording of 2026-08.
 */
export function overflowProblem(message: string): string | undefined {
  if (!/context.{0,20}(length|window|size|limit)|too many tokens|(prompt|input) is too long/i.test(message))
    return undefined;
  const isRecognized =
    /prompt is too long: \d+ tokens > \d+ maximum/i.test(message) ||
    message.includes("input length and `max_tokens` exceed context limit");
  return isRecognized ? undefined : "a prompt that is too long, in other words";
}
