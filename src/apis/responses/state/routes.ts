import { estimateTokens } from "../../../core/estimate-tokens.ts";
import { FailureError } from "../../../core/failure.ts";
import type { GenerationRequest } from "../../../core/request.ts";
import type { JsonValue } from "../../json-text.ts";
import type { CalledModel, PortAnswer, PortCall, PortRoute } from "../../port-state.ts";
import { missingModel } from "../../failures.ts";
import { bodyText } from "../body-text.ts";
import { ResponseIds } from "../ids.ts";
import { responsesRequestInSteps } from "../read-request.ts";
import { isOfUser, sealHistory, withoutCompactions } from "./compaction.ts";
import { forgetHistory } from "./history.ts";
import { inputItems } from "./input-items.ts";
import { deleteResponse } from "./kept-response.ts";
import type { Item } from "./kept-response.ts";
import { listInputItems } from "./list-input-items.ts";
import { recall } from "./recall.ts";
import { cancelResponse, showResponse, stopResponse } from "./show-response.ts";

/** The paths below `/responses`. */
export const responsesRoutes: readonly PortRoute[] = [
  { method: "POST", path: "/responses/input_tokens", answer: countInputTokens },
  { method: "POST", path: "/responses/compact", answer: compact },
  { method: "GET", path: "/responses/{id}", answer: showResponse },
  { method: "DELETE", path: "/responses/{id}", answer: forget },
  { method: "POST", path: "/responses/{id}/cancel", answer: cancelResponse },
  { method: "GET", path: "/responses/{id}/input_items", answer: listInputItems },
];

async function forget(call: PortCall): Promise<PortAnswer> {
  const { kept, isBrief } = await stopResponse(call, "deleted");
  const { brief, lasting } = call.shelves;
  if (isBrief) await deleteResponse(brief, kept);
  await deleteResponse(lasting, kept);
  await forgetHistory(call.shelves, kept);
  return { body: bodyText({ id: kept.id, object: "response", deleted: true }, call.profile) };
}

/** `POST /responses/input_tokens`: what the prompt of a response would have. */
async function countInputTokens(call: PortCall): Promise<PortAnswer> {
  const body = await call.readBody();
  const options = call.readOptions(body);
  const recalled = await recall(body, call.shelves);
  const { request } = await call.inTurns(responsesRequestInSteps(body, call.requestId, options, recalled));
  const tokens = await call.model(request.model).countTokens(request);
  return { body: bodyText({ object: "response.input_tokens", input_tokens: tokens }, call.profile) };
}

/** `POST /responses/compact`: the conversation in one item that stands for it. */
async function compact(call: PortCall): Promise<PortAnswer> {
  const body = await call.readBody();
  const { model, input } = (body ?? {}) as { readonly [name: string]: unknown };
  if (typeof model !== "string") throw missingModel();
  const options = call.readOptions(body);
  const recalled = await recall(body, call.shelves);
  const { request } = await call.inTurns(responsesRequestInSteps(body, call.requestId, options, recalled));
  const named = call.model(request.model);
  const created = call.now();
  const ids = new ResponseIds(call.random);
  const id = ids.response(created);
  const own = inputItems(input, recalled.references, { responseId: id, created, random: call.random });
  const all = [...recalled.history, ...own].map((item) => ({ item, path: "" }));
  // What was compacted before is not sealed twice.
  const items = (await call.inTurns(withoutCompactions(all))).map(({ item }) => item as Item);
  const tokens = await countOrEstimate(named, request);
  const value = {
    id,
    object: "response.compaction",
    created_at: created,
    output: [
      ...items.filter(isOfUser),
      { id: ids.item("cmp_", created), type: "compaction", encrypted_content: sealHistory(items) },
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
  return { body: bodyText(value as JsonValue, call.profile) };
}

/** A conversation can be compacted without its count, so a server that fails to count it is no reason to refuse. */
async function countOrEstimate(model: CalledModel, request: GenerationRequest): Promise<number> {
  try {
    return await model.countTokens(request);
  } catch (error) {
    if (error instanceof FailureError) return estimateTokens(request);
    throw error;
  }
}
