/**
 * The ids that OpenAI gives to answers, calls and requests. Source: 19,600 answers recorded from 2023 to 2026.
 * `random` is uniform in [0, 1).
 */

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 2019-12-20T00:00:00Z, from which the time in an answer's id counts. */
const idEpoch = 1_576_800_000;

/**
 * An answer's id: the prefix and 29 characters, of which the first five are `created` (Unix seconds) in base 62, so that ids sort
 * by time.
 */
export function answerId(prefix: "chatcmpl-" | "cmpl-", created: number, random: () => number): string {
  let rest = Math.max(0, Math.floor(created) - idEpoch) % 62 ** 5;
  let time = "";
  for (let i = 0; i < 5; i++) {
    time = base62.charAt(rest % 62) + time;
    rest = Math.floor(rest / 62);
  }
  return prefix + time + randomBase62(24, random);
}

/** The number of characters after its prefix that an id needs to be unique. */
const minUnique = 16;

/**
 * Returns the id that a source gave to an answer or to an item of it, if it has OpenAI's or Anthropic's prefix and can be unique; else
 * undefined. Clients find stored responses by their ids, and replace messages that have the same id. Ollama's ids are random numbers below
 * 999 (chat) and 999,999 (Responses; middleware/openai.go, 2026), KoboldCpp's is always `chatcmpl-A1` (koboldcpp.py).
 */
export function ownId(prefix: string, id: string | undefined): string | undefined {
  return id?.startsWith(prefix) === true && id.length >= prefix.length + minUnique ? id : undefined;
}

/** `call_` and 24 characters. */
export function toolCallId(random: () => number): string {
  return `call_${randomBase62(24, random)}`;
}

/** `req_` and 32 hexadecimal digits, as in the `x-request-id` header. */
export function requestId(random: () => number): string {
  const digits = (): string => {
    const value = Math.floor(random() * 2 ** 16);
    return hexOfByte(value >>> 8) + hexOfByte(value & 0xff);
  };
  // V8 copies texts of up to 12 characters; a longer one refers to the two that it was made of, and Inspect keeps every id.
  const start = `req_${digits()}${digits()}`;
  const middle = digits() + digits() + digits();
  return start + middle + (digits() + digits() + digits());
}

const bytesInHex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function hexOfByte(byte: number): string {
  return bytesInHex[byte] ?? "";
}

const base62Pairs = Array.from(base62, (first) => Array.from(base62, (second) => first + second)).flat();

/** Characters of `[0-9A-Za-z]`, each equally likely. */
export function randomBase62(length: number, random: () => number): string {
  let text = length % 2 === 0 ? "" : base62.charAt(Math.floor(random() * 62));
  while (text.length < length) text += base62Pairs[Math.floor(random() * 62 ** 2)] ?? "";
  return text;
}
