import * as z from "zod";

const count = z.int().min(0);

/** Source: OpenAI's OpenAPI document, `CreateEmbeddingResponse`. With `encoding_format: "base64"` an embedding is a string. */
export const embeddings = z.object({
  object: z.literal("list"),
  data: z.array(
    z.object({
      object: z.literal("embedding"),
      index: count,
      embedding: z.union([z.array(z.number()), z.string()]),
    }),
  ),
  model: z.string(),
  usage: z.object({ prompt_tokens: count, total_tokens: count }),
});
