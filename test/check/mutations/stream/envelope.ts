import { chat, onChunk, onPiece, always } from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { chunksOf, type Draft, hasError, insert, type Json, piecesOf, remove } from "./stream-draft.ts";

const notFirst = (chunk: Json, draft: Draft) => chunksOf(draft)[0] !== chunk;

export const envelopeMutations: readonly StreamMutation[] = [
  onChunk("stream/id", "no id", always, (chunk) => delete chunk.id),
  onChunk("stream/id", "an empty id", always, (chunk) => (chunk.id = "")),
  onChunk("stream/one-id", "another id", notFirst, (chunk) => (chunk.id = "chatcmpl-other")),
  {
    rule: "stream/id-prefix",
    name: "ids of another form",
    apply: (draft) => each(draft, (chunk) => (chunk.id = "gen-1")),
  },
  onChunk("stream/object", "another object", always, (chunk) => (chunk.object = "chat.completion")),
  onChunk("stream/object", "no object", always, (chunk) => delete chunk.object),
  onChunk("stream/created", "a fraction", always, (chunk) => (chunk.created = 1_700_000_000.25)),
  onChunk("stream/created", "a string", always, (chunk) => (chunk.created = "1700000000")),
  onChunk("stream/created", "no created", always, (chunk) => delete chunk.created),
  onChunk(
    "stream/one-created",
    "created moves on",
    notFirst,
    (chunk) => (chunk.created = (chunk.created as number) + 1),
  ),
  onChunk("stream/model", "no model", always, (chunk) => delete chunk.model),
  onChunk("stream/one-model", "another model", notFirst, (chunk) => (chunk.model = "other")),
  onChunk("stream/fingerprint", "a number", always, (chunk) => (chunk.system_fingerprint = 7)),
  onChunk("stream/service-tier", "an unknown tier", always, (chunk) => (chunk.service_tier = "gold")),
  onChunk("stream/choices", "null", always, (chunk) => (chunk.choices = null)),
  onChunk("stream/choices", "no choices", always, (chunk) => delete chunk.choices),
  onChunk("stream/choices-empty", "an empty chunk before the answer", always, (chunk, draft) =>
    insert(draft, chunk, { ...chunk, choices: [], usage: undefined }, "before"),
  ),
  onPiece(
    "stream/one-choice",
    "two choices in a chunk",
    () => always,
    ({ chunk, choice }) => (chunk.choices as Json[]).push({ ...choice }),
  ),
  onChunk("stream/known-members", "timings", always, (chunk) => (chunk.timings = { predicted_ms: 12 })),
  onChunk("stream/known-members", "a member of its own", always, (chunk) => (chunk.provider = "Acme")),
  onChunk(
    "stream/key-order",
    "choices first",
    (_, draft) => chat(draft),
    (chunk) => reorder(chunk, ["choices"]),
  ),
  onPiece(
    "choice/index",
    "no index",
    () => always,
    ({ choice }) => delete choice.index,
  ),
  onPiece(
    "choice/index",
    "an index beyond n",
    () => always,
    ({ choice }) => (choice.index = 7),
  ),
  onPiece(
    "choice/index",
    "an index as text",
    () => always,
    ({ choice }) => (choice.index = "0"),
  ),
  {
    rule: "choice/all",
    name: "one choice of several is missing",
    apply(draft) {
      if (typeof draft.request?.n !== "number" || !chat(draft) || hasError(draft)) return false;
      for (const { chunk } of piecesOf(draft, (piece) => piece.choice.index === 1)) remove(draft, chunk);
      return true;
    },
  },
  onPiece(
    "choice/finish-key",
    "no finish_reason",
    () => (piece) => piece.choice.finish_reason === null,
    ({ choice }) => delete choice.finish_reason,
  ),
];

function each(draft: Draft, change: (chunk: Json) => void): boolean {
  for (const chunk of chunksOf(draft)) change(chunk);
  return true;
}

function reorder(object: Json, names: readonly string[]): void {
  const entries = Object.entries(object).toSorted(([a], [b]) => Number(names.includes(b)) - Number(names.includes(a)));
  for (const key of Object.keys(object)) delete object[key];
  Object.assign(object, Object.fromEntries(entries));
}
