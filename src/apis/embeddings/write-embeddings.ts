import type { EmbeddingAnswer } from "../../core/engine.ts";
import type { Profile } from "../profile.ts";

/** The layout of a body: on one line, or as OpenAI does, with a number per line and a final line feed (recordings of 2025 and 2026). */
const layouts: Readonly<Record<Profile["name"], (value: object) => string>> = {
  lean: (value) => JSON.stringify(value),
  exact: (value) => `${JSON.stringify(value, null, 2)}\n`,
};

/**
 * Writes the body of an embeddings answer. Numbers are printed by `JSON.stringify`, as in OpenAI's answers. `base64`: the vector as
 * little-endian float32 values, as OpenAI packs them.
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
    // An unknown count is absent: a zero would be a count.
    ...(promptTokens !== null && { usage: { prompt_tokens: promptTokens, total_tokens: promptTokens } }),
  };
  return layouts[profile.name](value);
}

function packed(vector: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [at, value] of vector.entries()) bytes.setFloat32(at * 4, value, true);
  let text = "";
  for (let at = 0; at < bytes.byteLength; at++) text += String.fromCharCode(bytes.getUint8(at));
  return btoa(text);
}
