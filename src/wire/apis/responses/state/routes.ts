import { estimateTokens } from "../../../core/estimate-tokens.ts";
import { FailureError, invalidRequest } from "../../../core/failure.ts";
import type { GenerationRequest } from "../../../core/request.ts";
import { missingModel } from "../../failures.ts";
import type { JsonValue } from "../../json-text.ts";
import type { CalledModel, PortAnswer, PortCall, PortRoute } from "../../port-state.ts";
import { numberAbove, numberBelow, unsupportedEnumValue } from "../../request/refusals.ts";
import { responseBodyText } from "../form.ts";
import { idPrefixes, ResponseIds } from "../ids.ts";
import { checkInclude } from "../parameters.ts";
import { responsesRequestInSteps } from "../request.ts";
import { compactedItems, storedInputItems, isOfUser, withoutCompactions } from "./input-items.ts";
import { forgetHistory, historyOf, recall } from "./recall.ts";
import { cancelResponse, showResponse, stopResponse, requireResponse } from "./show-response.ts";
import { deleteResponse, outputOf } from "./stored-response.ts";
import type { StoredItem } from "./stored-response.ts";

/** The paths below `/responses`. */
export const responsesRoutes: readonly PortRoute[] = [
  { method: "POST", path: "/responses/input_tokens", answer: countInputTokens },
  { method: "POST", path: "/responses/compact", answer: compact },
  { method: "GET", path: "/responses/{id}", answer: showResponse },
  { method: "DELETE", path: "/responses/{id}", answer: deleteStored },
  { method: "POST", path: "/responses/{id}/cancel", answer: cancelResponse },
  { method: "GET", path: "/responses/{id}/input_items", answer: listInputItems },
];

async function deleteStored(call: PortCall): Promise<PortAnswer> {
  const { stored, keyspace } = await stopResponse(call, "deleted");
  await deleteResponse(keyspace, stored);
  if (keyspace !== call.keyspaces.stored) await deleteResponse(call.keyspaces.stored, stored);
  await forgetHistory(call.keyspaces, stored);
  return { body: responseBodyText({ id: stored.id, object: "response", deleted: true }, call.profile) };
}

/** `POST /responses/input_tokens`: the number of tokens that the prompt of a response would have. */
async function countInputTokens(call: PortCall): Promise<PortAnswer> {
  const body = await call.readBody();
  const options = call.readOptions(body);
  const recalled = await recall(body, call.keyspaces, options.forwards);
  const { request } = await call.inTurns(responsesRequestInSteps(body, call.requestId, options, recalled));
  const tokens = await call.model(request.model).countTokens(request);
  return { body: responseBodyText({ object: "response.input_tokens", input_tokens: tokens }, call.profile) };
}

/** `POST /responses/compact`: the conversation in one item. */
async function compact(call: PortCall): Promise<PortAnswer> {
  const body = await call.readBody();
  const { model, input } = (body ?? {}) as { readonly [name: string]: unknown };
  if (typeof model !== "string") throw missingModel();
  const options = call.readOptions(body);
  const recalled = await recall(body, call.keyspaces, options.forwards);
  const { request } = await call.inTurns(responsesRequestInSteps(body, call.requestId, options, recalled));
  const named = call.model(request.model);
  // An upstream of this API makes the conversation shorter.
  const compacted = options.forwards === true ? await named.compact(request) : undefined;
  if (compacted) return { body: responseBodyText(compacted as JsonValue, call.profile) };
  const created = call.now();
  const ids = new ResponseIds(call.random);
  const id = ids.response(created);
  const own = storedInputItems(input, recalled.references, { responseId: id, created, random: call.random });
  const all = [...recalled.history.placed(), ...own.map((item) => ({ item, path: "" }))];
  // Earlier compactions are not encoded twice.
  const items = (await call.inTurns(withoutCompactions(all))).map(({ item }) => item as StoredItem);
  const tokens = await countOrEstimate(named, request);
  const value = {
    id,
    object: "response.compaction",
    created_at: created,
    output: [
      ...items.filter(isOfUser),
      { id: ids.item(idPrefixes.compaction, created), type: "compaction", encrypted_content: compactedItems(items) },
    ],
    usage: {
      input_tokens: tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: tokens,
    },
  };
  // The items were read from JSON.
  return { body: responseBodyText(value as JsonValue, call.profile) };
}

/** A conversation can be compacted without its exact count, so a server that fails to count tokens is no reason to refuse. */
async function countOrEstimate(model: CalledModel, request: GenerationRequest): Promise<number> {
  try {
    return await model.countTokens(request);
  } catch (error) {
    if (error instanceof FailureError) return estimateTokens(request);
    throw error;
  }
}

const defaultLimit = 20;
const maxLimit = 100;

/** `GET /responses/{id}/input_items`: the conversation before the output of the response, the last item first. */
async function listInputItems(call: PortCall): Promise<PortAnswer> {
  const { stored } = await requireResponse(call);
  const all = (await historyOf(stored, call.keyspaces)).items.toArray();
  return itemPage(all.slice(0, all.length - outputOf(stored).length), call);
}

/**
 * Returns how items are shown: encrypted content only if it is in `include`, and only that of reasoning. Stored calls have the state of their
 * source there. Throws `FailureError`.
 */
export function includedIn(call: PortCall): (item: StoredItem) => StoredItem {
  const values = [...call.queries("include[]"), ...call.queries("include")];
  if (call.profile.judgesAsVendor) checkInclude(values);
  const isIncluded = values.includes("reasoning.encrypted_content");
  return (item) => {
    const { encrypted_content: encrypted, ...shown } = item;
    if (encrypted === undefined || item["type"] === "compaction") return item;
    return isIncluded && item["type"] === "reasoning" ? item : shown;
  };
}

/** The page of items that the query asks for. Throws `FailureError`. */
export function itemPage(items: StoredItem[], call: PortCall): PortAnswer {
  const show = includedIn(call);
  const limit = limitOf(call.query("limit"));
  const order = call.query("order") ?? "desc";
  if (order !== "asc" && order !== "desc") throw unsupportedEnumValue("order", order, ["asc", "desc"]);
  if (order === "desc") items.reverse();
  const after = call.query("after");
  const start = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) throw invalidRequest(`Item with id '${after}' not found.`, "after");
  const page = items.slice(start, start + limit);
  const value = {
    object: "list",
    data: page.map(show),
    first_id: page[0]?.["id"] ?? null,
    has_more: start + limit < items.length,
    last_id: page.at(-1)?.["id"] ?? null,
  };
  // The items were read from JSON.
  return { body: responseBodyText(value as JsonValue, call.profile) };
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return defaultLimit;
  const limit = Number(text);
  if (text === "" || !Number.isInteger(limit)) {
    const message = "Invalid type for 'limit': expected an integer, but got a string instead.";
    throw invalidRequest(message, "limit", "invalid_type");
  }
  if (limit < 1) throw numberBelow("limit", "integer", 1, limit);
  if (limit > maxLimit) throw numberAbove("limit", "integer", maxLimit, limit);
  return limit;
}
