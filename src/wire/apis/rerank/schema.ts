import * as z from "zod";
import { expecting, integerShape, list } from "../request/shapes.ts";

/*
 * The objects of `POST /v1/rerank`: what Cohere's API (v2/rerank), Jina's, vLLM and llama.cpp's server have in common. The keys of a shape are
 * in the order of the wire; `.meta({ note })` of a request's member is its row in docs/parameters.md.
 */

const count = z.int().min(0);

/** Cohere's limit of documents per request ("Best practices for using Rerank"). */
const maxDocuments = 10_000;

/** A text, or an object with a `text`. */
const document = z.union([z.string(), z.object({ text: z.string() })], expecting("a string or an object with a text"));

export const rerankRequest = z.object({
  model: z.string(),
  query: z.string().min(1).meta({ note: "Not empty." }),
  documents: list(document, { phrase: "an array of strings", least: 1, most: maxDocuments }).meta({
    note: "1 to 10,000 texts, or objects with a `text`.",
  }),
  top_n: integerShape(1).optional().meta({ note: "The number of documents in the answer; default: all." }),
  return_documents: z.boolean().optional().meta({ note: "Adds the text of each document to the answer." }),
  raw_scores: z
    .boolean()
    .optional()
    .meta({ note: "llama.cpp: returns the scores of the model unchanged, not as numbers from 0 to 1." }),
});

export const rankedDocument = z.object({
  index: count,
  relevance_score: z.number(),
  document: z.object({ text: z.string() }).optional(),
});

/** Token counts are in `usage`, as in Jina, vLLM and llama.cpp's server, and in `meta`, as in Cohere's API; absent if they are not known. */
export const ranking = z.object({
  id: z.string(),
  object: z.literal("list"),
  model: z.string(),
  results: z.array(rankedDocument),
  usage: z.object({ prompt_tokens: count, total_tokens: count }).optional(),
  meta: z.object({ tokens: z.object({ input_tokens: count }) }).optional(),
});
