/** A value as a text that clients keep and give back as it is. `mark` tells what it is, and that it is ours. */
export function seal(mark: string, value: unknown): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(JSON.stringify(value))) bytes += String.fromCharCode(byte);
  return mark + btoa(bytes);
}

/** The value of a seal; undefined where it has another mark, or is broken. */
export function openSeal(mark: string, sealed: string): unknown {
  if (!sealed.startsWith(mark)) return undefined;
  try {
    const bytes = Uint8Array.from(atob(sealed.slice(mark.length)), (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
  } catch {
    return undefined;
  }
}
