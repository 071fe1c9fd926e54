import { typeOfBase64 } from "../adapt/fit-media.ts";

/** Why an image in base64 cannot be used: it is empty, it is not base64, or it is of no known type. */
export type ImageDefect = "empty" | "base64" | "unknown";

/** The characters that are checked. A text that is not base64 shows it at its beginning; the whole may have megabytes. */
const checkedLength = 1000;

/** Checks an image in base64 by its length and its beginning. Returns `undefined` for one that may be valid. */
export function imageDefect(data: string): ImageDefect | undefined {
  if (data === "") return "empty";
  const head = data.slice(0, checkedLength);
  const isWhole = head.length === data.length || !/\s/.test(head);
  if (!/^[A-Za-z0-9+/\s]*(?:=\s*){0,2}$/.test(head) || (isWhole && data.trim().length % 4 !== 0)) return "base64";
  return typeOfBase64(data) === undefined ? "unknown" : undefined;
}
