const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A part of a text that shares no memory with it: an engine keeps the whole of a text in memory for the sake of a part. */
export function copied(text: string, start: number, end: number): string {
  return decoder.decode(encoder.encode(text.slice(start, end)));
}

/** The last place up to `end` where a text can be cut: not within a character. */
export function wholeCharacters(text: string, end: number): number {
  const unit = text.charCodeAt(end);
  return end < text.length && unit >= 0xdc00 && unit < 0xe000 ? end - 1 : end;
}
