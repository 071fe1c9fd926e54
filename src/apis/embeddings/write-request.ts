import type { EmbeddingRequest } from "../../core/engine.ts";

/** Writes the body of an embeddings request to another server. It always asks for numbers; this server makes base64 of them. */
export function writeEmbeddingsRequest(request: EmbeddingRequest): { [name: string]: unknown } {
  const { model, inputs, dimensions, extra } = request;
  return {
    ...extra,
    model,
    input: inputs.length === 1 && typeof inputs[0] === "string" ? inputs[0] : inputs,
    encoding_format: "float",
    ...(dimensions !== undefined && { dimensions }),
  };
}
