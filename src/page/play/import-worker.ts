import { readFile } from "./conversation-file.ts";
import type { FiledConversation } from "./conversation-file.ts";
import type { ConversationRecord } from "./conversation-store.ts";
import { storedTurn } from "./stored-turn.ts";
import type { StoredTurn } from "./stored-turn.ts";

/** What the worker is asked: a file first, then one conversation after the other, by its number. */
export type ImportRequest = { readonly file: Blob } | { readonly at: number };

/** What it answers. */
export type ImportReply =
  | { readonly problem: string }
  | { readonly total: number }
  | { readonly record: Omit<ConversationRecord, "id">; readonly turns: readonly StoredTurn[] };

let conversations: readonly FiledConversation[] = [];

async function replyTo(request: ImportRequest): Promise<ImportReply> {
  if ("file" in request) {
    conversations = readFile(await request.file.text(), Date.now());
    return { total: conversations.length };
  }
  const { record, turns } = conversations[request.at] ?? { turns: [] };
  if (!record) throw new Error(`There is no conversation ${request.at}.`);
  return { record, turns: turns.map(storedTurn) };
}

// A file of hundreds of megabytes takes seconds to read, in which the page could not answer.
addEventListener("message", ({ data }: MessageEvent<ImportRequest>) => {
  replyTo(data).then(
    (reply) => postMessage(reply),
    (error: unknown) => postMessage({ problem: error instanceof Error ? error.message : String(error) }),
  );
});
