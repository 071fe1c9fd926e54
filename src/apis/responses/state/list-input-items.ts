import { invalidRequest } from "../../../core/failure.ts";
import { numberAbove, numberBelow, unsupportedEnumValue } from "../../request/refusals.ts";
import type { PortAnswer, PortCall } from "../../port-state.ts";
import { bodyText } from "../body-text.ts";
import type { JsonValue } from "../../json-text.ts";
import { historyOf } from "./history.ts";
import { outputOf } from "./kept-response.ts";
import { theResponse } from "./show-response.ts";

const standardLimit = 20;
const mostItems = 100;

/** `GET /responses/{id}/input_items`: all that the model was told and had said before, the last first. */
export async function listInputItems(call: PortCall): Promise<PortAnswer> {
  const { kept } = await theResponse(call);
  const limit = limitOf(call.query("limit"));
  const order = call.query("order") ?? "desc";
  if (order !== "asc" && order !== "desc") throw unsupportedEnumValue("order", order, ["asc", "desc"]);
  const all = await historyOf(kept, call.shelves);
  const items = all.slice(0, all.length - outputOf(kept).length);
  if (order === "desc") items.reverse();
  const after = call.query("after");
  const start = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) throw invalidRequest(`Item with id '${after}' not found.`, "after");
  const page = items.slice(start, start + limit);
  const value = {
    object: "list",
    data: page,
    first_id: page[0]?.["id"] ?? null,
    has_more: start + limit < items.length,
    last_id: page.at(-1)?.["id"] ?? null,
  };
  // The items were read from JSON.
  return { body: bodyText(value as JsonValue, call.profile) };
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return standardLimit;
  const limit = Number(text);
  if (text === "" || !Number.isInteger(limit)) {
    const message = "Invalid type for 'limit': expected an integer, but got a string instead.";
    throw invalidRequest(message, "limit", "invalid_type");
  }
  if (limit < 1) throw numberBelow("limit", "integer", 1, limit);
  if (limit > mostItems) throw numberAbove("limit", "integer", mostItems, limit);
  return limit;
}
