/** So many characters in a row that stand in a text, too, are a quotation; fewer may be a coincidence. */
export const quotation = 20;
/** Of a message, this much is looked at; the rest is dropped. */
const longestMessage = 4000;
/** To look through more takes longer than others should wait: 10 ms. In characters, and so in bytes of a text that has them. */
export const mostText: number = 512 * 1024;
const notShown = "[not shown: it may quote the conversation, which is too long to be compared with it]";
/** Of the rolling hash. */
const factor = 31;

/**
 * A message for the log without what it quotes of these texts: another server may repeat a prompt in its error, and so may an exception.
 * A quotation of 20 characters or more becomes `[text]`. `values`: of any kind; every string in them counts, once. null: they are known
 * to be too long. Linear in their length; beyond 512 Ki characters the message is left out as a whole.
 */
export function withoutTexts(message: string, values: readonly unknown[] | null): string {
  const shown = message.slice(0, longestMessage);
  if (shown.length < quotation) return shown;
  const texts = values && textsOf(values);
  if (!texts) return notShown;
  /** Hash → where in the message something with it begins. */
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
      const others = known.filter((place) => !text.startsWith(shown.slice(place, place + quotation), at));
      if (others.length === known.length) return;
      for (const place of known) if (!others.includes(place)) quoted.fill(1, place, place + quotation);
      // A text may say it again and again; it is found once.
      places.set(hash, others);
    });
  }
  return masked(shown, quoted);
}

/** Calls `hear` with the hash of each `quotation` characters in a row. */
function forEachHash(text: string, hear: (hash: number, at: number) => void): void {
  let hash = 0;
  let highest = 1;
  for (let at = 1; at < quotation; at++) highest = Math.imul(highest, factor);
  for (let at = 0; at < text.length; at++) {
    if (at >= quotation) hash = (hash - Math.imul(text.charCodeAt(at - quotation), highest)) | 0;
    hash = (Math.imul(hash, factor) + text.charCodeAt(at)) | 0;
    if (at >= quotation - 1) hear(hash, at - quotation + 1);
  }
}

/** The texts in some values that could be quoted, each once; null: there is too much. */
function textsOf(values: readonly unknown[]): ReadonlySet<string> | null {
  const texts = new Set<string>();
  let left = mostText;
  const gather = (value: unknown): void => {
    // Each value costs a little, too.
    left -= 4;
    if (left < 0) return;
    if (typeof value === "string") {
      if (value.length < quotation || texts.has(value)) return;
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
