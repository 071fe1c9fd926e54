import type * as z from "zod";
import { compaction, inputItemList, responseDeletion } from "../../../../wire/apis/responses/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atBodyPath, atName, objectOf, ownIdViolations, shown } from "../place.ts";
import type { Exchange } from "../exchange.ts";
import { schemaViolations } from "../spec/validate.ts";
import type { BodyView, Json } from "../view.ts";
import { type Rules, type Violation, notShown } from "../rule.ts";

/** Whether a body is the answer of an endpoint. */
function isOf(endpoint: Exchange["endpoint"]): (view: BodyView) => boolean {
  return ({ exchange, value }) => exchange.endpoint === endpoint && exchange.response.status === 200 && isObject(value);
}

/** Reports the members of a body that differ from a schema. */
function* memberViolations(view: BodyView, schema: z.ZodObject): Generator<Violation> {
  for (const violation of schemaViolations(schema, view.value)) yield atBodyPath(view, violation);
}

function listed({ data }: Json): readonly Json[] {
  return Array.isArray(data) ? data.filter(isObject) : [];
}

/** Rules about the answers of the paths below `/responses`. */
export const responseBodyRules: Rules<BodyView> = {
  *"responses/items-list"(view) {
    if (!isOf("response-items")(view)) return notShown;
    const list = objectOf(view);
    yield* memberViolations(view, inputItemList.omit({ first_id: true, last_id: true }));
    const items = listed(list);
    for (const [name, item] of [
      ["first_id", items[0]],
      ["last_id", items.at(-1)],
    ] as const)
      if (item && list[name] !== item.id) yield atName(view, name, `${name} is ${shown(list[name])}`);
  },
  *"responses/items-ids"(view) {
    if (!isOf("response-items")(view) || !Array.isArray(objectOf(view).data)) return notShown;
    const data = objectOf(view).data as readonly unknown[];
    const ids = data.map((item) => (isObject(item) ? item.id : undefined));
    for (const { at, found } of ownIdViolations("id", ids)) yield atName(view, "data", `data[${at}]: ${found}`);
    for (const { type } of listed(objectOf(view)))
      if (typeof type !== "string" || type === "") yield atName(view, "data", `type is ${shown(type)}`);
  },
  *"responses/deleted"(view) {
    if (!isOf("response-deletion")(view)) return notShown;
    const { id } = objectOf(view);
    if (typeof id !== "string" || !view.exchange.request.path.endsWith(id))
      yield atName(view, "id", `id is ${shown(id)}`);
    yield* memberViolations(view, responseDeletion.omit({ id: true }));
  },
  *"responses/compaction"(view) {
    if (!isOf("response-compaction")(view)) return notShown;
    for (const violation of schemaViolations(compaction, view.value)) yield atBodyPath(view, violation);
    const { output } = objectOf(view);
    const last: unknown = Array.isArray(output) ? output.at(-1) : undefined;
    const content = isObject(last) && last.type === "compaction" ? last.encrypted_content : undefined;
    if (typeof content !== "string" || content === "")
      yield atName(view, "output", `output ends with ${shown(last)}, which is no compaction`);
  },
};

/** The message that refuses a request by WebSocket. */
export const socketErrorRules: Rules<BodyView> = {
  *"socket/error"(view) {
    if (view.exchange.endpoint !== "response-socket-error" || !isObject(view.value)) return notShown;
    const { type, status, error } = objectOf(view);
    const whole = { start: 0, end: Math.min(80, view.exchange.response.body.length) };
    if (type !== "error") yield { ...whole, found: `type is ${shown(type)}` };
    if (!(Number.isInteger(status) && (status as number) >= 400 && (status as number) < 600))
      yield { ...whole, found: `status is ${shown(status)}` };
    const { message, code, param } = isObject(error) ? error : {};
    if (typeof message !== "string" || message === "") yield { ...whole, found: `message is ${shown(message)}` };
    for (const [name, value] of Object.entries({ code, param }))
      if (value !== undefined && value !== null && typeof value !== "string")
        yield { ...whole, found: `${name} is ${shown(value)}` };
  },
};
