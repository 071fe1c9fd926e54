/** A sequence of this many characters that occurs in a text is a quotation; a shorter one may be a coincidence. */
export const quotationLength = 20;
/** A longer message is cut. */
const maxMessage = 4000;
/** The maximum number of characters to compare with: more would block other requests for more than 10 ms. */
export const maxComparedText: number = 512 * 1024;
const notShown = "[not shown: it may quote the conversation, which is too long to be compared with it]";
/** The factor of the rolling hash. */
const factor = 31;

/**
 * Removes quotations of a conversation from a message for the log: another server's error, or an exception, may repeat a prompt. A
 * quotation of 20 characters or more becomes `[text]`. `values`: the conversation, whose strings are searched; null: known to be too long.
 * Takes linear time. If the strings have more than 512 Ki characters, the whole message is replaced.
 */
export function withoutQuotations(message: string, values: readonly unknown[] | null): string {
  const shown = message.slice(0, maxMessage);
  if (shown.length < quotationLength) return shown;
  const texts = values && textsOf(values);
  if (!texts) return notShown;
  /** Hash → the positions in the message where a sequence with this hash begins. */
  const places = new Map<number, number[]>();
  forEachHash(shown, (hash, at) => {
    const known = places.get(hash);
    if (known) known.push(at);
    else places.set(hash, [at]);
  });
  const quoted = new Uint8Array(shown.length);
  for (const text of texts) {
    forEachHash(text, (hash, at) => {
      const known = places.get(hash);
      if (!known) return;
      const others = known.filter((place) => !text.startsWith(shown.slice(place, place + quotationLength), at));
      if (others.length === known.length) return;
      for (const place of known) if (!others.includes(place)) quoted.fill(1, place, place + quotationLength);
      // A text may repeat the sequence: it is marked once.
      places.set(hash, others);
    });
  }
  return masked(shown, quoted);
}

/** Calls `visit` with the hash of each sequence of `quotation` characters. */
function forEachHash(text: string, visit: (hash: number, at: number) => void): void {
  let hash = 0;
  let highest = 1;
  for (let at = 1; at < quotationLength; at++) highest = Math.imul(highest, factor);
  for (let at = 0; at < text.length; at++) {
    if (at >= quotationLength) hash = (hash - Math.imul(text.charCodeAt(at - quotationLength), highest)) | 0;
    hash = (Math.imul(hash, factor) + text.charCodeAt(at)) | 0;
    if (at >= quotationLength - 1) visit(hash, at - quotationLength + 1);
  }
}

/** The distinct strings in some values that may be quoted; null: too many characters. */
function textsOf(values: readonly unknown[]): ReadonlySet<string> | null {
  const texts = new Set<string>();
  let left = maxComparedText;
  const gather = (value: unknown): void => {
    // Each value takes some time, too.
    left -= 4;
    if (left < 0) return;
    if (typeof value === "string") {
      if (value.length < quotationLength || texts.has(value)) return;
      left -= value.length;
      if (left >= 0) texts.add(value);
    } else if (Array.isArray(value)) {
      for (const item of value) {
        gather(item);
        if (left < 0) return;
      }
    } else if (typeof value === "object" && value !== null) {
      for (const name in value) {
        gather((value as Readonly<Record<string, unknown>>)[name]);
        if (left < 0) return;
      }
    }
  };
  gather(values);
  return left < 0 ? null : texts;
}

function masked(text: string, quoted: Uint8Array): string {
  let out = "";
  for (let at = 0; at < text.length; at++) {
    if (quoted[at] === 0) out += text[at];
    else if (at === 0 || quoted[at - 1] === 0) out += "[text]";
  }
  return out;
}
