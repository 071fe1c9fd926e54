import { floatText } from "../json-text.ts";

/** How a float is written as JSON. */
export type NumberForm = (value: number) => string;

/** As JavaScript does: profile `lean`. */
export const plainNumber: NumberForm = (value) => JSON.stringify(value);

/** As OpenAI's streams do, which Rust's serializer writes: `1.0`, `-1.9e-7`. */
export const streamNumber: NumberForm = floatText;

/** As OpenAI's whole bodies do, which Python writes: `1.0`, `-1.9e-07`. `value` must be finite. */
export const bodyNumber: NumberForm = (value) => {
  if (value === 0 || (Number.isInteger(value) && Math.abs(value) < 1e16)) return floatText(value);
  const size = Math.abs(value);
  if (size >= 1e-4 && size < 1e16) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
};
