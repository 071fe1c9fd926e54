import { randomInt } from "node:crypto";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** An id for a tool call, as OpenAI makes them: `call_` and 24 base62 digits. */
export function newCallId(): string {
  let id = "call_";
  for (let i = 0; i < 24; i++) id += digits[randomInt(digits.length)];
  return id;
}
