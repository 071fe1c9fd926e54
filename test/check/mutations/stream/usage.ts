import { hasUsage, chat, onChunk } from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { chunksOf, type Draft, insert, type Json, remove } from "./stream-draft.ts";

const asked = (draft: Draft) => (draft.request?.stream_options as Json | undefined)?.include_usage === true;
const counts = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };

export const usageMutations: readonly StreamMutation[] = [
  onChunk(
    "usage/uninvited",
    "usage that nobody asked for",
    (_, draft) => !asked(draft),
    (chunk, draft) => insert(draft, chunksOf(draft).at(-1) as Json, { ...chunk, choices: [], usage: counts }, "after"),
  ),
  onChunk(
    "usage/key-uninvited",
    "a null usage",
    (_, draft) => !asked(draft),
    (chunk) => (chunk.usage = null),
  ),
  onChunk("usage/missing", "the usage chunk is dropped", hasUsage, (chunk, draft) => remove(draft, chunk)),
  onChunk(
    "usage/once",
    "usage on a chunk before",
    (chunk, draft) => asked(draft) && chunk.usage === null && chunksOf(draft).some(hasUsage),
    (chunk) => (chunk.usage = counts),
  ),
  onChunk(
    "usage/own-chunk",
    "usage next to a choice",
    (chunk) => (chunk.choices as unknown[]).length > 0,
    (chunk) => (chunk.usage = counts),
  ),
  onChunk("usage/own-chunk", "usage before the answer", hasUsage, (chunk, draft) => {
    remove(draft, chunk);
    draft.frames.unshift(chunk);
  }),
  onChunk(
    "usage/null-before",
    "no usage key",
    (chunk) => chunk.usage === null,
    (chunk) => delete chunk.usage,
  ),
  onChunk("usage/type", "a count below zero", hasUsage, (chunk) => ((chunk.usage as Json).prompt_tokens = -1)),
  onChunk("usage/type", "a fraction", hasUsage, (chunk) => ((chunk.usage as Json).completion_tokens = 1.5)),
  onChunk("usage/type", "no total", hasUsage, (chunk) => delete (chunk.usage as Json).total_tokens),
  onChunk("usage/sum", "a wrong total", hasUsage, (chunk) => ((chunk.usage as Json).total_tokens = 1)),
  onChunk(
    "usage/details",
    "more cached than there are",
    hasUsage,
    (chunk) => ((chunk.usage as Json).prompt_tokens_details = { cached_tokens: 99 }),
  ),
  onChunk(
    "usage/zero",
    "zeros",
    (chunk, draft) => hasUsage(chunk) && chat(draft),
    (chunk) => (chunk.usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
  ),
];
