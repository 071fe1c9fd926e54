/** What a string and what holds it take beside its characters, in bytes. */
const perText = 96;

/** At most so many bytes does a text take in memory. */
export function textBytes(text: string): number {
  return perText + 2 * text.length;
}
