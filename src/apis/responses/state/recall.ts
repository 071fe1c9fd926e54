import { invalidRequest } from "../../../core/failure.ts";
import type { Shelves } from "../../port-state.ts";
import { mostMessages } from "../../request/size-limits.ts";
import { historyOf } from "./history.ts";
import { findItems, findResponse, itemsById, statusOf } from "./kept-response.ts";
import type { FoundResponse, Item } from "./kept-response.ts";
import { previousNotFound } from "./previous-not-found.ts";

/** What a request refers to. */
export interface Recalled {
  /** The response that it goes on from. */
  readonly previous?: FoundResponse;
  /** All that was said up to there. */
  readonly history: readonly Item[];
  /** The items that its own input refers to, by their ids. */
  readonly references: ReadonlyMap<string, Item>;
}

export const nothingRecalled: Recalled = { history: [], references: new Map() };

/**
 * Finds what a request's body (parsed JSON of any shape) refers to. An item that is not found is left for the reader to judge.
 * `forwards`: so is a response, which the server behind may know. Rejects with `FailureError`.
 */
export async function recall(body: unknown, shelves: Shelves, forwards = false): Promise<Recalled> {
  if (typeof body !== "object" || body === null) return nothingRecalled;
  const { previous_response_id: previousId, input } = body as { readonly [name: string]: unknown };
  // A longer input is refused when it is read.
  const wanted = new Set(Array.isArray(input) && input.length <= mostMessages ? input.flatMap(referenceIn) : []);
  if (typeof previousId !== "string" && wanted.size === 0) return nothingRecalled;
  const previous = typeof previousId === "string" ? await findPrevious(previousId, shelves, forwards) : undefined;
  const history = previous ? await historyOf(previous.kept, shelves) : [];
  const said = itemsById(wanted.size > 0 ? history : []);
  const references = new Map([...wanted].flatMap((id) => (said.has(id) ? [[id, said.get(id) as Item] as const] : [])));
  for (const [id, item] of await findItems(
    shelves,
    [...wanted].filter((id) => !said.has(id)),
  ))
    references.set(id, item);
  return { ...(previous && { previous }), history, references };
}

async function findPrevious(id: string, shelves: Shelves, forwards: boolean): Promise<FoundResponse | undefined> {
  const found = await findResponse(shelves, id);
  if (!found) {
    if (forwards) return undefined;
    throw previousNotFound(id);
  }
  const status = statusOf(found.kept);
  if (status !== "queued" && status !== "in_progress") return found;
  throw invalidRequest(`Previous response with id '${id}' is still in progress.`, "previous_response_id");
}

/** The id that an item refers to; clients leave the type out, too. */
function referenceIn(item: unknown): string[] {
  if (typeof item !== "object" || item === null) return [];
  const { type, role, id } = item as { readonly [name: string]: unknown };
  const isReference = type === "item_reference" || ((type ?? null) === null && (role ?? null) === null);
  return isReference && typeof id === "string" ? [id] : [];
}
