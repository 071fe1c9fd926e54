import type { PromptInput } from "../preparing/prepared-request.ts";
import type { Answer } from "../protocol.ts";
import type { Steps } from "./round-share.ts";

/** A conversation as the template writes it. `bos`: what the model's BOS is called. */
export function* writtenPrompt(prompts: readonly PromptInput[], bos: string): Steps<Answer> {
  let text = "";
  for (const prompt of prompts) {
    if (prompt.type !== "spans") continue;
    text += (prompt.bos ? bos : "") + prompt.spans.map((span) => span.text).join("");
    yield;
  }
  return { about: "prompt", text };
}
