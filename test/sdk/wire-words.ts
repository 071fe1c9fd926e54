import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A member in snake case, an event of Responses, a beta, a version of a tool or a header: what a client's code has of the wire. */
const wireWord =
  /\b[a-z]{2,}(?:_[a-z0-9]+)+\b|\bresponse\.[a-z_]+(?:\.[a-z_]+)+|\b[a-z]+(?:-[a-z0-9]+)+-20\d\d-\d\d-\d\d\b|\b(?:anthropic|openai|x)-[a-z-]+\b/g;

/**
 * Returns the words in a package's code that may be on the wire, each with its first line. A client that has no types of the wire says in its
 * code alone what it sends and reads.
 *
 * @param folder Absolute path of an installed package.
 */
export function wireWordsOf(folder: string): ReadonlyMap<string, string> {
  const words = new Map<string, string>();
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (path) => /\.(?:mjs|js)$/.test(path) && !/(?:^|\/)(?:node_modules|src|docs|test)\/|\.umd\.|\.min\./.test(path),
  );
  for (const path of paths.sort()) {
    for (const line of readFileSync(join(folder, path), "utf8").split("\n")) {
      if (/^\s*(?:\/\/|\*|import |export )/.test(line) || line.length > 2000) continue;
      for (const [word] of line.matchAll(wireWord)) if (!words.has(word)) words.set(word, line);
    }
  }
  return words;
}
