import type * as z from "zod";
import { membersOf } from "../../../../wire/apis/members.ts";
import {
  compaction,
  inputItemList,
  inputTokenCount,
  responseDeletion,
} from "../../../../wire/apis/responses/schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import { atBodyPath, atName, objectOf, ownIdViolations, shown } from "../place.ts";
import type { Exchange } from "../exchange.ts";
import type { BodyRule, Violation } from "../rule.ts";
import { schemaViolation } from "../spec/validate.ts";
import type { BodyView, Json } from "../view.ts";

/** Whether a body is the answer of an endpoint. */
function isOf(endpoint: Exchange["endpoint"]): (view: BodyView) => boolean {
  return ({ exchange, value }) => exchange.endpoint === endpoint && exchange.response.status === 200 && isObject(value);
}

/** Reports the members of a body that differ from a schema. */
function* memberViolations(view: BodyView, schema: z.ZodObject): Generator<Violation> {
  const body = objectOf(view);
  for (const { name, schema: member } of membersOf(schema))
    if (!member.safeParse(body[name]).success) yield atName(view, name, `${name} is ${shown(body[name])}`);
}

function listed({ data }: Json): readonly Json[] {
  return Array.isArray(data) ? data.filter(isObject) : [];
}

/** Rules about the answers of the paths below `/responses`. */
export const responseBodyRules: readonly BodyRule[] = [
  {
    id: "responses/items-list",
    severity: "error",
    concern: "text is lost or wrong",
    says: 'GET /v1/responses/{id}/input_items answers {"object": "list", "data": […], "first_id", "last_id", "has_more"}, whose ids are those of data.',
    source: "specification: ResponseItemList; source code of openai-node: it pages by data and has_more",
    breaks: ["official SDKs: responses.inputItems.list()"],
    judges: "body",
    shown: isOf("response-items"),
    *judge(view) {
      const list = objectOf(view);
      yield* memberViolations(view, inputItemList.omit({ first_id: true, last_id: true }));
      const items = listed(list);
      for (const [name, item] of [
        ["first_id", items[0]],
        ["last_id", items.at(-1)],
      ] as const)
        if (item && list[name] !== item.id) yield atName(view, name, `${name} is ${shown(list[name])}`);
    },
  },
  {
    id: "responses/items-ids",
    severity: "error",
    concern: "text is lost or wrong",
    says: "Every input item has a type and an id of its own.",
    source: "specification: ItemResource; source code of openai-node: the next page begins after the last id",
    breaks: ["official SDKs: responses.inputItems.list() (there is no second page)"],
    judges: "body",
    shown: (view) => isOf("response-items")(view) && Array.isArray(objectOf(view).data),
    *judge(view) {
      const data = objectOf(view).data as readonly unknown[];
      const ids = data.map((item) => (isObject(item) ? item.id : undefined));
      for (const { at, found } of ownIdViolations("id", ids)) yield atName(view, "data", `data[${at}]: ${found}`);
      for (const { type } of listed(objectOf(view)))
        if (typeof type !== "string" || type === "") yield atName(view, "data", `type is ${shown(type)}`);
    },
  },
  {
    id: "responses/deleted",
    severity: "note",
    concern: "it differs from OpenAI",
    says: 'DELETE /v1/responses/{id} answers {"id", "object": "response", "deleted": true}.',
    source: "OpenAI's documentation: Delete a model response",
    breaks: [],
    judges: "body",
    shown: isOf("response-deletion"),
    *judge(view) {
      const { id } = objectOf(view);
      if (typeof id !== "string" || !view.exchange.request.path.endsWith(id))
        yield atName(view, "id", `id is ${shown(id)}`);
      yield* memberViolations(view, responseDeletion.omit({ id: true }));
    },
  },
  {
    id: "responses/compaction",
    severity: "error",
    concern: "text is lost or wrong",
    says: "POST /v1/responses/compact answers a response.compaction: id, created_at, usage, and an output that ends with a compaction and its encrypted_content.",
    source: "specification: CompactResource; recordings 7 of 7; compliance tests of Open Responses",
    breaks: ["Codex", "official SDKs: responses.compact()"],
    judges: "body",
    shown: isOf("response-compaction"),
    *judge(view) {
      const violation = schemaViolation(compaction, view.value);
      if (violation) yield atBodyPath(view, violation);
      const { output } = objectOf(view);
      const last: unknown = Array.isArray(output) ? output.at(-1) : undefined;
      const content = isObject(last) && last.type === "compaction" ? last.encrypted_content : undefined;
      if (typeof content !== "string" || content === "")
        yield atName(view, "output", `output ends with ${shown(last)}, which is no compaction`);
    },
  },
];

/** Rules about the number of tokens that a request has. Source: 5 recordings of 2026-07 and 2026-08. */
export const tokenCountRules: readonly BodyRule[] = [
  {
    id: "responses/input-tokens",
    severity: "error",
    concern: "token counts are wrong",
    says: 'POST /v1/responses/input_tokens answers {"object": "response.input_tokens", "input_tokens": n}.',
    source: "specification: TokenCountsResource; recordings 5 of 5",
    breaks: ["official SDKs: responses.inputTokens.count()", "clients that trim their history by it"],
    judges: "body",
    shown: isOf("response-tokens"),
    *judge(view) {
      yield* memberViolations(view, inputTokenCount);
    },
  },
];

/** The message that refuses a request by WebSocket. */
export const socketErrorRules: readonly BodyRule[] = [
  {
    id: "socket/error",
    severity: "error",
    concern: "errors look like answers",
    says: 'A request by WebSocket is refused with {"type": "error", "status": 400, "error": {"code", "message", "param"}}: the status that HTTP would have.',
    source:
      "OpenAI's documentation: WebSocket mode; compliance tests of Open Responses; source code of Codex CLI: WrappedWebsocketErrorEvent",
    breaks: ["Codex (it takes the error for an event that it does not know, and waits)"],
    judges: "body",
    shown: ({ exchange, value }) => exchange.endpoint === "response-socket-error" && isObject(value),
    *judge(view) {
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
  },
];
