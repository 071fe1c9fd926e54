import type { StreamMutation } from "./on-stream.ts";
import { type Json } from "./stream-draft.ts";

const errorFrame = { error: { message: "The engine failed.", type: "server_error", param: null, code: null } };

export const errorMutations: readonly StreamMutation[] = [
  inError("error/shape", "an error that is a string", () => ({ error: "failed" })),
  inError("error/shape", "an error without code", () => ({
    error: { message: "failed", type: "server_error", param: null },
  })),
  inError("error/own-form", 'an object "error"', () => ({ object: "error", message: "failed", code: 500 })),
  inError("error/no-choices", "choices next to the error", (frame) => ({
    ...frame,
    choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
  })),
  {
    rule: "error/last",
    name: "an answer that goes on after an error",
    apply(draft) {
      draft.frames.splice(1, 0, errorFrame);
      return draft.frames.length > 3;
    },
  },
];

function inError(rule: string, name: string, change: (frame: Json) => Json): StreamMutation {
  return {
    rule,
    name,
    apply(draft) {
      const at = draft.frames.findIndex((frame) => typeof frame === "object" && "error" in frame);
      if (at >= 0) draft.frames[at] = change(draft.frames[at] as Json);
      return at >= 0;
    },
  };
}
