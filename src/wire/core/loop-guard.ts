/** Detects a degenerate loop: a text that repeats itself over and over, as small models do until their context is full. */

/** Where a text of an answer is. A grammar or a call decides a `structured` text, which may be a table or a list. */
export type TextPlace = "text" | "reasoning" | "structured";

/** The end of the text is compared with itself after this many new characters, which costs less than a microsecond per token. */
const interval = 1024;
/** The longest repeated text. */
const maxPeriod = 2048;
/** The shortest repeated text that counts as a sentence. */
const minSentence = 32;
/**
 * A repeated sentence, or white space, is a loop from this length on, and from this number of repetitions. In reasoning, this is true of
 * repeated words of any length: users ask for "hello" a thousand times as an answer, not as reasoning.
 */
const minLoop = 4096;
const minRepetitions = 10;
/** Anything else is a loop from this length on: a word, zeros, base64, rows of a table, equal objects of JSON. */
const maxTail = 20_480;
/** If the last characters do not occur once more within the longest period, there is no loop. */
const probeLength = 64;

/**
 * Reads an answer in parts and detects a loop: its end has one period, and is long for it. Only exact repetitions count.
 *
 * The limits are far above what texts contain on purpose: in 40 MB of source code, documentation and recorded answers, no text repeats 10
 * times over 1,500 characters (`loop-guard.test.ts` reads what is there of it).
 *
 * The memory is bounded: the last 20,480 characters.
 */
export class LoopGuard {
  #tail = "";
  #unread = 0;

  /**
   * Returns the length of the repeated text in characters once the answer is a loop, else 0.
   */
  read(text: string, place: TextPlace = "text"): number {
    this.#tail += text;
    this.#unread += text.length;
    if (this.#unread < interval) return 0;
    this.#unread = 0;
    if (this.#tail.length > maxTail) this.#tail = this.#tail.slice(-maxTail);
    return loopIn(this.#tail, place);
  }
}

/** Returns the period of the end of a text that is a loop, else 0. */
function loopIn(tail: string, place: TextPlace): number {
  const { length } = tail;
  if (length < minLoop) return 0;
  if (tail.lastIndexOf(tail.slice(-probeLength), length - probeLength - 1) < length - probeLength - maxPeriod) return 0;
  const last = length - 1;
  // Knuth, Morris and Pratt's failure function of the reversed text: the shortest period of the end of each length, in linear time.
  const borders = new Int32Array(length + 1);
  let border = 0;
  let judged = 0;
  for (let reach = 2; reach <= length; reach++) {
    const unit = tail.charCodeAt(last - reach + 1);
    while (border > 0 && tail.charCodeAt(last - border) !== unit) border = borders[border] ?? 0;
    if (tail.charCodeAt(last - border) === unit) border++;
    borders[reach] = border;
    const period = reach - border;
    if (reach < minLoop || period > maxPeriod || reach < period * minRepetitions) continue;
    if (reach === maxTail || (period !== judged && isPlainText(tail.slice(-period), place))) return period;
    judged = period;
  }
  return 0;
}

const plainLetters = /[\p{L}\p{M}]/gu;
const words = /^[\p{L}\p{M}\s.,!?…'’"。，！？、-]+$/u;
const spaced = /\s|[^\0-\x7f]/;

/** Whether a repeated text is a sentence or white space; in reasoning, also a word. */
function isPlainText(period: string, place: TextPlace): boolean {
  if (period.trim() === "") return true;
  if (place === "structured" || !spaced.test(period)) return false;
  const letters = (period.match(plainLetters) ?? []).length;
  if (period.length < minSentence) return place === "reasoning" && words.test(period) && 2 * letters >= period.length;
  const spaces = (period.match(/ /g) ?? []).length;
  return letters >= 0.6 * period.length && letters + spaces >= 0.85 * period.length;
}

/** The line of the log for an answer that was ended. `period`: in characters; `tokens`: those of the answer, if known. */
export function loopWarning(period: number, tokens?: number): string {
  const after = tokens === undefined ? "" : ` after ${tokens} tokens`;
  return `the answer was ended with reason "length"${after}: it repeats the same ${period} characters over and over (loopGuard: off turns this off)`;
}
