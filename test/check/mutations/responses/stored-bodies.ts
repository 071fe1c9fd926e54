import type { Exchange } from "../../../../src/judge/check/rules/exchange.ts";
import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalResponseBody } from "../../legal/responses.ts";
import type { IllegalChange } from "../mutation.ts";
import { withBody } from "./stored-story.ts";
import type { Json } from "./stream-draft.ts";

/** Changes what is told about a stored response, or made of a history. */
function onStored(
  rule: string,
  name: string,
  endpoint: Exchange["endpoint"],
  change: (value: Json) => unknown,
): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const { exchange } = legalResponseBody(seed);
      if (exchange.endpoint !== endpoint) return undefined;
      const value = JSON.parse(exchange.response.body) as Json;
      return change(value) === false ? undefined : judge(withBody(exchange, value)).findings;
    },
  };
}

const items = (value: Json) => value.data as Json[];
const last = (value: Json) => (value.output as Json[]).at(-1) ?? {};

/** What the paths below a stored response answer. */
export const storedBodyMutations: readonly IllegalChange[] = [
  onStored("responses/items-list", "no object", "response-items", (value) => delete value.object),
  onStored("responses/items-list", "items", "response-items", (value) => {
    value.items = value.data;
    delete value.data;
  }),
  onStored("responses/items-list", "no has_more", "response-items", (value) => delete value.has_more),
  onStored("responses/items-list", "another last_id", "response-items", (value) => (value.last_id = "msg_other")),
  onStored("responses/items-list", "no first_id", "response-items", (value) => (value.first_id = null)),
  onStored("responses/items-ids", "an item without an id", "response-items", (value) => delete items(value)[0]?.id),
  onStored("responses/items-ids", "an item without a type", "response-items", (value) => delete items(value)[0]?.type),
  onStored("responses/items-ids", "the same id for all", "response-items", (value) => {
    for (const item of items(value)) item.id = "msg_1";
    return items(value).length > 1;
  }),
  onStored("responses/deleted", "not deleted", "response-deletion", (value) => (value.deleted = "no")),
  onStored("responses/deleted", "another id", "response-deletion", (value) => (value.id = "resp_other")),
  onStored("responses/deleted", "another object", "response-deletion", (value) => (value.object = "response.deleted")),
  onStored("responses/compaction", "no output", "response-compaction", (value) => delete value.output),
  onStored("responses/compaction", "no usage", "response-compaction", (value) => delete value.usage),
  onStored("responses/compaction", "another object", "response-compaction", (value) => (value.object = "response")),
  onStored("responses/compaction", "no compaction", "response-compaction", (value) => (value.output as Json[]).pop()),
  onStored(
    "responses/compaction",
    "nothing in it",
    "response-compaction",
    (value) => (last(value).encrypted_content = null),
  ),
];
