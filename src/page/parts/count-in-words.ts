/** `1 answer`, `12,000 answers`. `words`: the plural. */
export function countInWords(count: number, word: string, words = `${word}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? word : words}`;
}
