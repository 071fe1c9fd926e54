/**
 * Returns a JSON text in another layout: compact, or with `indent` spaces per level as `JSON.stringify` writes it. Strings have only the
 * escapes that JSON requires; numbers are unchanged. `json` must be valid JSON.
 */
export function laidOut(json: string, indent: number): string {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g) ?? [];
  let out = "";
  let depth = 0;
  const newLine = () => (indent === 0 ? "" : `\n${" ".repeat(depth * indent)}`);
  for (const [at, token] of tokens.entries()) {
    const empty = isOpening(tokens[at - 1]) && isClosing(token);
    if (isOpening(token)) {
      depth++;
      out += token;
      if (!isClosing(tokens[at + 1])) out += newLine();
    } else if (isClosing(token)) {
      depth--;
      out += empty ? token : newLine() + token;
    } else if (token === ",") out += token + newLine();
    else if (token === ":") out += indent === 0 ? ":" : ": ";
    else out += token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token;
  }
  return out;
}

/** Returns the index of the first difference of two texts, or `undefined` if they are equal. */
export function firstDifference(text: string, other: string): number | undefined {
  if (text === other) return undefined;
  let at = 0;
  while (at < text.length && text[at] === other[at]) at++;
  return at;
}

function isOpening(token: string | undefined): boolean {
  return token === "{" || token === "[";
}

function isClosing(token: string | undefined): boolean {
  return token === "}" || token === "]";
}
