import type { Exchange } from "./exchange.ts";
import type { Rules } from "./rule.ts";

/** The escapes of a JSON text, each at its first backslash: a pair of surrogates, half of one, any other; and halves that are not escaped. */
const escapes =
  /\\u(?:d[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|(?<half>d[89a-f][\da-f]{2}))|\\[^]|(?<raw>[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff])/gi;

/** The rules about the text of an answer. */
export const textRules: Rules<Exchange> = {
  *"text/surrogates"({ response: { body } }) {
    for (const { 0: found, index, groups } of body.matchAll(escapes)) {
      if (groups?.["half"] === undefined && groups?.["raw"] === undefined) continue;
      yield { start: index, end: index + found.length, found: `${written(found)} alone` };
    }
  },
};

function written(half: string): string {
  return half.startsWith("\\") ? half : `\\u${half.charCodeAt(0).toString(16)}`;
}
