import type { TokenLogprob } from "../../wire/core/events.ts";
import { completionLogprobs } from "../../wire/apis/completions/completion-logprobs.ts";
import { jsonText } from "../../wire/apis/json-text.ts";
import { chatLogprobs } from "../../wire/apis/logprobs.ts";
import { RepairLog } from "../../wire/apis/tolerant/repairs.ts";
import { readLogprobs } from "../../wire/apis/tolerant/read-logprobs.ts";

/**
 * The shapes that logprobs have in the field.
 *
 * - chat: `{content: [{token, logprob, bytes, top_logprobs}], refusal}`
 * - completions: `{tokens, token_logprobs, top_logprobs: [{token: logprob}], text_offset}`
 * - together: `{tokens, token_logprobs}`, without alternatives
 * - float: the bare logprob of the one token
 */
export type LogprobShape = "chat" | "completions" | "together" | "float";

/**
 * Reads logprobs in any of the four shapes (`LogprobShape`), and recognises the shape by its members. `text` is the text that they belong
 * to; a bare float is the logprob of this one token. Repeated tokens keep their places. Returns null if there are no logprobs.
 *
 * @example
 * import { readTokenLogprobs } from "truewire";
 *
 * console.log(readTokenLogprobs(-0.5, "Hi"));
 * // → [ { token: 'Hi', logprob: -0.5, bytes: null, top: [] } ]
 * console.log(readTokenLogprobs({ tokens: ["a", "a"], token_logprobs: [-1, -2] }).map(({ logprob }) => logprob));
 * // → [ -1, -2 ]
 */
export function readTokenLogprobs(logprobs: unknown, text: string = ""): readonly TokenLogprob[] | null {
  const read = readLogprobs(logprobs, text, new RepairLog());
  return read?.text ?? read?.refusal ?? null;
}

/**
 * Writes logprobs in one of the four shapes. What a shape cannot express is lost: bytes outside `chat`, alternatives in `together`
 * and `float`, all but the first token in `float` (null for an empty list). JSON has no infinity: impossible tokens get OpenAI's −9999.
 *
 * @example
 * import { writeTokenLogprobs } from "truewire";
 *
 * const tokens = [{ token: "Hi", logprob: -0.5, bytes: [72, 105], top: [] }];
 * console.log(JSON.stringify(writeTokenLogprobs(tokens, "chat")));
 * // → {"content":[{"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[]}],"refusal":null}
 * console.log(JSON.stringify(writeTokenLogprobs(tokens, "together")));
 * // → {"tokens":["Hi"],"token_logprobs":[-0.5]}
 */
export function writeTokenLogprobs(tokens: readonly TokenLogprob[], shape: LogprobShape): unknown {
  switch (shape) {
    case "chat":
      return JSON.parse(jsonText(chatLogprobs(tokens, null, JSON.stringify)));
    case "completions":
      return JSON.parse(jsonText(completionLogprobs(tokens, 0, JSON.stringify).value));
    case "together": {
      const { tokens: texts, token_logprobs: logprobs } = JSON.parse(
        jsonText(completionLogprobs(tokens, 0, JSON.stringify).value),
      ) as { readonly tokens: unknown; readonly token_logprobs: unknown };
      return { tokens: texts, token_logprobs: logprobs };
    }
    case "float": {
      const [first] = tokens;
      return first === undefined || first.logprob === null ? null : Math.max(first.logprob, -9999);
    }
  }
}
