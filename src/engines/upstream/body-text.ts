import { isLong, jsonInPieces } from "../../core/json-in-pieces.ts";

/** So many characters are written at once, which takes a few milliseconds. */
const atOnce = 512 * 1024;
/** So many are one step of a longer body. */
const stepSize = 128 * 1024;

/** A request's body. A long one is written in steps, between which others have their turn. */
export function bodyText(body: object): string | Promise<string> {
  return isLong(body, atOnce) ? inSteps(body) : JSON.stringify(body);
}

async function inSteps(body: object): Promise<string> {
  const pieces: string[] = [];
  for (const piece of jsonInPieces(body, stepSize)) {
    pieces.push(piece);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return pieces.join("");
}
