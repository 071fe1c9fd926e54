import type { Exchange } from "./exchange.ts";
import type { RuleFacts, Violation } from "./rule.ts";

/** A rule about the text of any answer, of any API, streamed or whole. */
export interface TextRule extends RuleFacts {
  readonly judges: "text";
  judge(exchange: Exchange): Iterable<Violation>;
}

/** The escapes of a JSON text, each at its first backslash: a pair of surrogates, half of one, any other; and halves that are not escaped. */
const escapes =
  /\\u(?:d[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|(?<half>d[89a-f][\da-f]{2}))|\\[^]|(?<raw>[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff])/gi;

/** The rules about the text of an answer. */
export const textRules: readonly TextRule[] = [
  {
    id: "text/surrogates",
    severity: "error",
    concern: "text is lost or wrong",
    says: "Texts are well-formed: no half of a surrogate pair is without its other half, in no delta either.",
    source: "RFC 8259, section 8.2; RFC 3629, section 3: UTF-8 cannot encode half of a pair",
    breaks: ["Rust's serde_json, which refuses the whole text", "Python programs that print, store or send the text"],
    judges: "text",
    *judge({ response: { body } }) {
      for (const { 0: found, index, groups } of body.matchAll(escapes)) {
        if (groups?.["half"] === undefined && groups?.["raw"] === undefined) continue;
        yield { start: index, end: index + found.length, found: `${written(found)} alone` };
      }
    },
  },
];

function written(half: string): string {
  return half.startsWith("\\") ? half : `\\u${half.charCodeAt(0).toString(16)}`;
}
