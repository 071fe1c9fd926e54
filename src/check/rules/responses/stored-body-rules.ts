import { isObject } from "../../../core/json.ts";
import { atName, objectOf } from "../body/body-place.ts";
import type { Exchange } from "../exchange.ts";
import { compaction } from "../../../apis/responses/schema.ts";
import { ownIdOffences } from "../own-ids.ts";
import { shown } from "../place.ts";
import type { BodyRule } from "../rule.ts";
import { specOffence } from "../spec/validate.ts";
import type { BodyView, Json } from "../view.ts";

/** A whole answer of an endpoint. */
function isOf(endpoint: Exchange["endpoint"]): (view: BodyView) => boolean {
  return ({ exchange, value }) => exchange.endpoint === endpoint && exchange.response.status === 200 && isObject(value);
}

function listed({ data }: Json): readonly Json[] {
  return Array.isArray(data) ? data.filter(isObject) : [];
}

/** What the paths below a stored response answer, and what is made of a history. */
export const storedBodyRules: readonly BodyRule[] = [
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
      if (list.object !== "list") yield atName(view, "object", `object is ${shown(list.object)}`);
      if (!Array.isArray(list.data)) yield atName(view, "data", `data is ${shown(list.data)}`);
      if (typeof list.has_more !== "boolean") yield atName(view, "has_more", `has_more is ${shown(list.has_more)}`);
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
    source: "specification: ItemResource; source code of openai-node: the next page begins behind the last id",
    breaks: ["official SDKs: responses.inputItems.list() (there is no second page)"],
    judges: "body",
    shown: (view) => isOf("response-items")(view) && Array.isArray(objectOf(view).data),
    *judge(view) {
      const data = objectOf(view).data as readonly unknown[];
      const ids = data.map((item) => (isObject(item) ? item.id : undefined));
      for (const { at, found } of ownIdOffences("id", ids)) yield atName(view, "data", `data[${at}]: ${found}`);
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
      const { id, object, deleted } = objectOf(view);
      if (typeof id !== "string" || !view.exchange.request.path.endsWith(id))
        yield atName(view, "id", `id is ${shown(id)}`);
      if (object !== "response") yield atName(view, "object", `object is ${shown(object)}`);
      if (deleted !== true) yield atName(view, "deleted", `deleted is ${shown(deleted)}`);
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
      const offence = specOffence(compaction, view.value);
      if (offence) yield atName(view, offence.member, `${offence.path} ${offence.found}`);
      const { output } = objectOf(view);
      const last: unknown = Array.isArray(output) ? output.at(-1) : undefined;
      const sealed = isObject(last) && last.type === "compaction" ? last.encrypted_content : undefined;
      if (typeof sealed !== "string" || sealed === "")
        yield atName(view, "output", `output ends with ${shown(last)}, which is no compaction`);
    },
  },
];
