import * as z from "zod";

const count = z.int().min(0);

/** With `encoding_format: "base64"`, `embedding` is a string. Source: OpenAI's OpenAPI document, `Embedding`. */
export const embedding = z.object({
  object: z.literal("embedding"),
  index: count,
  embedding: z.union([z.array(z.number()), z.string()]),
});

/** Source: OpenAI's OpenAPI document, `CreateEmbeddingResponse`. Profile `lean` leaves out a usage that the source has not counted. */
export const embeddings = z.object({
  object: z.literal("list"),
  data: z.array(embedding),
  model: z.string(),
  usage: z.object({ prompt_tokens: count, total_tokens: count }).meta({ lean: "sometimes" }),
});
