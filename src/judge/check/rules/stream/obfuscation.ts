import { atFrame, atMember, shown } from "../place.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { Chunk, StreamView } from "../view.ts";
import { chat } from "./stream-rule.ts";
import { type Rules, notShown, on } from "../rule.ts";

function obfuscated(view: StreamView): readonly Chunk[] {
  return view.chunks.filter((chunk) => "obfuscation" in chunk.value);
}

/**
 * True if the length of a chunk is 1 modulo 16, in characters. No recording shows whether a character beyond the basic plane counts once
 * or twice, so both are accepted.
 */
export function hasObfuscatedLength(json: string): boolean {
  return json.length % 16 === 1 || [...json].length % 16 === 1;
}

/**
 * A rule about the random characters that hide a token's length. Source: specification, `stream_options.include_obfuscation`; recordings
 * since 2025-08.
 */
export const obfuscationRules: Rules<StreamView> = on(chat, {
  *"stream/obfuscation"(view) {
    if (obfuscated(view).length === 0) return notShown;
    const without = view.chunks.find(({ value }) => !("obfuscation" in value) && !("error" in value));
    if (without) yield atFrame(without.frame, "a chunk without obfuscation");
    for (const chunk of obfuscated(view)) {
      const { obfuscation } = chunk.value;
      if (typeof obfuscation !== "string" || !/^[0-9A-Za-z]{0,15}$/.test(obfuscation))
        yield atMember(chunk, "obfuscation", `obfuscation is ${shown(obfuscation)}`);
      else if (!hasObfuscatedLength(chunk.frame.data ?? "") && !endsAudio(chunk))
        yield atMember(
          chunk,
          "obfuscation",
          `${obfuscation.length} characters in a chunk of ${chunk.frame.data?.length ?? 0}`,
        );
    }
  },
});

/** True for OpenAI's last chunk of an audio answer, which says when the audio expires and is padded by another rule. */
function endsAudio({ choices }: Chunk): boolean {
  return choices.some(({ delta }) => isObject(delta) && isObject(delta.audio) && "expires_at" in delta.audio);
}
