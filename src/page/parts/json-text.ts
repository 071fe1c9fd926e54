import { isJsonText } from "../../wire/core/json.ts";

/** Deeper members and items are not indented further. */
const maxIndent = 40;

/**
 * Returns a JSON text with a line for each member and item, indented by two spaces. Strings and numbers stay as they were written: parsing
 * them would round large numbers. A text that is not JSON is returned as it is.
 */
export function indentedJson(text: string): string {
  if (!isJsonText(text)) return text;
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"?|[{}[\],:]|[^\s"{}[\],:]+/g) ?? [];
  const written: string[] = [];
  let depth = 0;
  let before = "";
  for (const token of tokens) {
    const wasOpened = before === "{" || before === "[";
    const closes = token === "}" || token === "]";
    if (closes) depth--;
    if (closes ? !wasOpened : wasOpened || before === ",") written.push("\n", "  ".repeat(Math.min(depth, maxIndent)));
    written.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth++;
    before = token;
  }
  return written.join("");
}
