import * as z from "zod";

/** A model as OpenAI lists it. Source: OpenAI's OpenAPI document, `Model`, `ListModelsResponse`. */
export const openaiModel = z.object({
  id: z.string().min(1),
  object: z.literal("model"),
  created: z.int(),
  owned_by: z.string(),
  /** The date of an announced shutdown (openai 7.57). No recording shows its place. */
  shutdown_date: z.string().nullable().optional(),
});

export const openaiModelList = z.object({ object: z.literal("list"), data: z.array(openaiModel) });
