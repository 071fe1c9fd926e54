import { errorResponse as errorSchema, errorStatuses } from "../../../../wire/apis/messages/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atName, objectOf, shown } from "../place.ts";
import { vendorOf } from "../exchange.ts";
import { schemaViolations } from "../spec/validate.ts";
import type { BodyView, Json } from "../view.ts";
import { type Rules, notShown, whenAll } from "../rule.ts";

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
export const messageBodyRules: Rules<BodyView> = {
  ...whenAll(failed, {
    *"messages/failure-overflow"(view) {
      const { message } = errorOf(view);
      const found = typeof message === "string" ? overflowProblem(message) : undefined;
      if (found !== undefined) yield atName(view, "message", found);
    },
  }),
  // A body alone has no status.
  *"messages/failure-type"(view) {
    if (!failed(view) || view.exchange.response.headers === null || typeof errorOf(view).type !== "string")
      return notShown;
    const { type } = errorOf(view);
    const { status } = view.exchange.response;
    const fitting = typeof type === "string" && Object.hasOwn(errorStatuses, type) ? errorStatuses[type] : undefined;
    if (!fitting) yield atName(view, "type", `an error of type ${shown(type)}`);
    else if (!fitting.includes(status)) yield atName(view, "type", `${shown(type)} with status ${status}`);
  },
  *"messages/request-id"(view) {
    if (!isAnthropics(view) || view.exchange.response.headers === null) return notShown;
    const { exchange } = view;
    if (!exchange.response.headers?.["request-id"]) yield { start: 0, end: 0, found: "no request-id" };
  },
  *"messages/models"(view) {
    if (!lists(view)) return notShown;
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
};

/** Returns what is wrong with an error, in a stream or as a body, or `undefined`. Source: Anthropic's documentation, Errors. */
export function errorShapeProblem(value: Json): string | undefined {
  const [violation] = schemaViolations(errorSchema.omit({ request_id: true }), value);
  return violation && `${violation.path} ${violation.found}`;
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
