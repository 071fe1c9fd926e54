import type { EmbeddingAnswer } from "../../generation/engine.ts";
import type { Profile } from "../profile.ts";

/**
 * The body of an embeddings answer. Floats are printed as `JSON.stringify` does, which is OpenAI's way here; profile `openai` is pretty,
 * a float a line, with a final line feed (wire.md section 5). `base64` is that of little-endian float32 values, as OpenAI packs them.
 */
export function writeEmbeddings(
  { vectors, promptTokens }: EmbeddingAnswer,
  model: string,
  encoding: "float" | "base64",
  profile: Profile,
): string {
  const value = {
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: encoding === "base64" ? packed(vector) : vector,
    })),
    model,
    // What is not known is left out: a zero would be a count.
    ...(promptTokens !== null && { usage: { prompt_tokens: promptTokens, total_tokens: promptTokens } }),
  };
  return profile.name === "exact" ? `${JSON.stringify(value, null, 2)}\n` : JSON.stringify(value);
}

function packed(vector: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [at, value] of vector.entries()) bytes.setFloat32(at * 4, value, true);
  let text = "";
  for (let at = 0; at < bytes.byteLength; at++) text += String.fromCharCode(bytes.getUint8(at));
  return btoa(text);
}
