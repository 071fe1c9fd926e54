import * as z from "zod";
import { list } from "../request/shapes.ts";
import { metadataShape } from "../request/check-schema.ts";

/*
 * The objects of OpenAI's Conversations API. Items and lists of items are those of the Responses API. Keys are in the order of the wire.
 * Source: OpenAI's OpenAPI document, `ConversationResource`, `DeletedConversationResource`, `CreateConversationBody`,
 * `UpdateConversationBody`.
 */

export const conversation = z.object({
  id: z.string(),
  object: z.literal("conversation"),
  created_at: z.int(),
  metadata: z.record(z.string(), z.string()),
});

/** The answer of `DELETE /v1/conversations/{id}`. */
export const conversationDeletion = z.object({
  id: z.string(),
  object: z.literal("conversation.deleted"),
  deleted: z.literal(true),
});

/** The maximum number of items that one request adds. */
export const maxAddedItems = 20;

const items = list(z.unknown(), { phrase: "an array of objects", most: maxAddedItems });

/** The body of `POST /v1/conversations`. */
export const createConversation = z.object({ items: items.nullish(), metadata: metadataShape.nullish() });

/** The body of `POST /v1/conversations/{id}`. */
export const updateConversation = z.object({ metadata: metadataShape.nullable() });

/** The body of `POST /v1/conversations/{id}/items`. */
export const addItems = z.object({ items });
