import { invalidRequest } from "../../core/failure.ts";
import { checkMetadata } from "../request/check-schema.ts";
import { missingParameter, objectBody, parameterFailure } from "../request/refusals.ts";
import type { JsonValue } from "../json-text.ts";
import { orderedMembers } from "../members.ts";
import type { PortAnswer, PortCall, PortRoute } from "../port-state.ts";
import { responseBodyText } from "../responses/form.ts";
import { ResponseIds } from "../responses/ids.ts";
import { readInput } from "../responses/read-input.ts";
import { storedInputItems } from "../responses/state/input-items.ts";
import type { History } from "../responses/state/history.ts";
import { nothingRecalled, referencedItems } from "../responses/state/recall.ts";
import { includedIn, itemPage } from "../responses/state/routes.ts";
import type { StoredItem } from "../responses/state/stored-response.ts";
import type * as z from "zod";
import { addItems, conversation, createConversation, updateConversation } from "./schema.ts";
import {
  changeConversation,
  conversationNotFound,
  deleteConversation,
  notFound,
  putConversation,
  requireConversation,
} from "./stored-conversation.ts";
import type { ConversationChange, StoredConversation } from "./stored-conversation.ts";

/** The Conversations API. */
export const conversationRoutes: readonly PortRoute[] = [
  { method: "POST", path: "/conversations", answer: create },
  { method: "GET", path: "/conversations/{id}", answer: retrieve },
  { method: "POST", path: "/conversations/{id}", answer: update },
  { method: "DELETE", path: "/conversations/{id}", answer: remove },
  { method: "POST", path: "/conversations/{id}/items", answer: createItems },
  { method: "GET", path: "/conversations/{id}/items", answer: listItems },
  { method: "GET", path: "/conversations/{id}/items/{item}", answer: retrieveItem },
  { method: "DELETE", path: "/conversations/{id}/items/{item}", answer: deleteItem },
];

async function create(call: PortCall): Promise<PortAnswer> {
  const { items = null, metadata = null } = bodyOf(createConversation, await call.readBody({}), call);
  const read = items ? await readItems(items, call, nothingRecalled.history) : [];
  const created = call.now();
  const beginning = { id: new ResponseIds(call.random).conversation(created), created };
  const changes: ConversationChange[] = [];
  if (metadata) changes.push({ metadata: checkedMetadata(metadata) });
  if (read.length > 0) changes.push({ items: read });
  await putConversation(call.keyspaces, beginning, changes);
  return shown(await requireConversation(call.keyspaces, beginning.id), call);
}

async function retrieve(call: PortCall): Promise<PortAnswer> {
  return shown(await requireConversation(call.keyspaces, call.id), call);
}

async function update(call: PortCall): Promise<PortAnswer> {
  const { metadata } = bodyOf(updateConversation, await call.readBody(), call);
  return changed(call, { metadata: checkedMetadata(metadata ?? {}) });
}

async function remove(call: PortCall): Promise<PortAnswer> {
  const { keyspaces, id, profile } = call;
  await requireConversation(keyspaces, id);
  if (!(await deleteConversation(keyspaces, id))) throw conversationNotFound(id);
  return { body: responseBodyText({ id, object: "conversation.deleted", deleted: true }, profile) };
}

async function createItems(call: PortCall): Promise<PortAnswer> {
  const { keyspaces, id, profile } = call;
  const { items } = bodyOf(addItems, await call.readBody(), call);
  const include = includedIn(call);
  const read = await readItems(items, call, (await requireConversation(keyspaces, id)).history());
  if (!(await changeConversation(keyspaces, id, { items: read }))) throw conversationNotFound(id);
  const value = {
    object: "list",
    data: read.map((item) => include(item)),
    first_id: read[0]?.["id"] ?? null,
    has_more: false,
    last_id: read.at(-1)?.["id"] ?? null,
  };
  // The items were read from JSON.
  return { body: responseBodyText(value as JsonValue, profile) };
}

async function listItems(call: PortCall): Promise<PortAnswer> {
  const found = await requireConversation(call.keyspaces, call.id);
  return itemPage(found.history().items.toArray(), call);
}

async function retrieveItem(call: PortCall): Promise<PortAnswer> {
  const include = includedIn(call);
  const item = itemOf(await requireConversation(call.keyspaces, call.id), call);
  // The item was read from JSON.
  return { body: responseBodyText(include(item) as JsonValue, call.profile) };
}

async function deleteItem(call: PortCall): Promise<PortAnswer> {
  itemOf(await requireConversation(call.keyspaces, call.id), call);
  return changed(call, { deleted: call.item });
}

function itemOf(found: StoredConversation, { item }: PortCall): StoredItem {
  const known = found.items[found.positionOf(item) ?? -1];
  if (known) return known;
  throw notFound(`Item with id '${item}' not found.`);
}

async function changed(call: PortCall, change: ConversationChange): Promise<PortAnswer> {
  const { keyspaces, id } = call;
  await requireConversation(keyspaces, id);
  if (!(await changeConversation(keyspaces, id, change))) throw conversationNotFound(id);
  return shown(await requireConversation(keyspaces, id), call);
}

function shown({ beginning: { id, created }, metadata }: StoredConversation, { profile }: PortCall): PortAnswer {
  const members = { id, object: "conversation", created_at: created, metadata };
  return { body: responseBodyText(orderedMembers<JsonValue>(conversation, members), profile) };
}

function checkedMetadata(metadata: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  checkMetadata(metadata);
  return metadata;
}

/** Reads a body whose members are all described by `schema`. Throws `FailureError` in OpenAI's words. */
export function bodyOf<Schema extends z.ZodObject>(
  schema: Schema,
  body: unknown,
  { profile }: Pick<PortCall, "profile">,
): z.output<Schema> {
  const members = objectBody(body);
  if (profile.judgesAsVendor)
    for (const name of Object.keys(members))
      if (!Object.hasOwn(schema.shape, name))
        throw invalidRequest(`Unknown parameter: '${name}'.`, name, "unknown_parameter");
  const read: Record<string, unknown> = {};
  for (const [name, shape] of Object.entries(schema.shape as Readonly<Record<string, z.ZodType>>)) {
    const result = shape.safeParse(members[name]);
    if (result.success) read[name] = result.data;
    else if (members[name] === undefined) throw missingParameter(name);
    else throw parameterFailure(name, members[name], result.error.issues);
  }
  return read as z.output<Schema>;
}

/** Validates items as the input of a response that continues `history`, and returns them as they are stored. */
async function readItems(
  items: readonly unknown[],
  { keyspaces, inTurns, profile, now, random, turnSeal: seal }: PortCall,
  history: History,
): Promise<StoredItem[]> {
  const { references, unknown } = await referencedItems(items, history, keyspaces);
  for (const id of unknown) throw notFound(`Item with id '${id}' not found.`);
  const recalled = { history, references };
  const strict = profile.judgesAsVendor;
  // Results of calls may be added before the calls.
  const options = {
    strict,
    forwards: true,
    warnings: [],
    found: [],
    updates: [],
    recalled,
    seal,
    opened: {},
    name: "items",
    anyResult: true,
  };
  await inTurns(readInput(items, options));
  return storedInputItems(items, references, { responseId: "", created: now(), random });
}
