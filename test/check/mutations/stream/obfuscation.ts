import { onText, type StreamMutation } from "./on-stream.ts";

/** The value of the first `obfuscation`, changed; no change where there is none. */
function padding(name: string, change: (value: string) => string): StreamMutation {
  return onText("stream/obfuscation", name, (body) =>
    body.replace(/"obfuscation":"([0-9A-Za-z]*)"/, (_, value: string) => `"obfuscation":${change(value)}`),
  );
}

export const obfuscationMutations: readonly StreamMutation[] = [
  padding("one character too many", (value) => `"${value}x"`),
  padding("sixteen characters too many", (value) => `"${value}0123456789abcdef"`),
  padding("one character too few", (value) => `"${value.slice(1)}"`),
  padding("none at all", () => '""'),
  padding("characters beyond base62", (value) => `"${"-".repeat(value.length)}"`),
  padding("null", () => "null"),
  onText("stream/obfuscation", "a chunk without", (body) => body.replace(/,"obfuscation":"[0-9A-Za-z]*"/, "")),
];
