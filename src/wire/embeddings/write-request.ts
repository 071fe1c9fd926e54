import type { EmbeddingRequest } from "../../generation/engine.ts";

/** The body of an embeddings request to another server: what the client sent, with floats asked for (base64 is ours to write). */
export function writeEmbeddingsRequest(request: EmbeddingRequest): { [name: string]: unknown } {
  const { inputs, dimensions, body } = request;
  const input = inputs.length === 1 && !Array.isArray(body["input"]) ? inputs[0] : inputs;
  return {
    ...body,
    model: request.model,
    input,
    encoding_format: "float",
    ...(dimensions !== undefined && { dimensions }),
  };
}
