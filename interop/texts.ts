/* Texts for tokenizers: twenty scripts and what tokenizers treat specially, by a generator that gives the same ones each time. */

/** First and last code points of letters. */
const scripts: readonly (readonly [first: number, last: number])[] = [
  [0x61, 0x7a], // Latin
  [0xc0, 0x17f], // Latin with marks
  [0x391, 0x3c9], // Greek
  [0x410, 0x44f], // Cyrillic
  [0x531, 0x556], // Armenian
  [0x5d0, 0x5ea], // Hebrew
  [0x620, 0x64a], // Arabic
  [0x904, 0x939], // Devanagari
  [0x985, 0x9b9], // Bengali
  [0xa85, 0xab9], // Gujarati
  [0xb85, 0xbb9], // Tamil
  [0xc85, 0xcb9], // Kannada
  [0xe01, 0xe2e], // Thai
  [0xe81, 0xeae], // Lao
  [0xf40, 0xf6c], // Tibetan
  [0x10d0, 0x10f0], // Georgian
  [0x1200, 0x1248], // Ethiopic
  [0x3041, 0x30fe], // Hiragana and Katakana
  [0x4e00, 0x9fff], // Han
  [0xac00, 0xd7a3], // Hangul
];

const between: readonly string[] = [
  ..." |  |\n|\n\n|\t|\r\n|   \n|. |, |! |? |; |-|_|/|'s |'re |\"|(|) |[|] |{|} |0|7|42|1234|3.14|20,000|%|$|€|°".split(
    "|",
  ),
  ..."é|e\u0301|\u00a0|\u3000|\u200b|\u200d|\ufeff|👍|👍🏽|👩‍👩‍👧|🇫🇷|𝕏|\u{20000}|�|http://a.b/c?d=e&f|x = y[i] != 0;|</p>|==|->|\\n".split(
    "|",
  ),
];

/** A small generator of numbers from 0 to 1: mulberry32 (public domain). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns `count` texts of up to twelve words; each is mostly of one script. */
export function textsInManyScripts(count: number, seed = 46): string[] {
  const next = numbers(seed);
  const upTo = (limit: number): number => Math.floor(next() * limit);
  const word = ([first, last]: readonly [number, number]): string => {
    const letters = Array.from({ length: 1 + upTo(9) }, () =>
      String.fromCodePoint(first + upTo(last - first + 1)),
    ).join("");
    return next() < 0.15 ? letters.toUpperCase() : letters;
  };
  return Array.from({ length: count }, (_, index) => {
    const own = scripts[index % scripts.length] ?? [0x61, 0x7a];
    const words = Array.from({ length: 1 + upTo(12) }, () => {
      const script = next() < 0.9 ? own : (scripts[upTo(scripts.length)] ?? own);
      return word(script) + (next() < 0.6 ? " " : (between[upTo(between.length)] ?? ""));
    });
    return words.join("");
  });
}
