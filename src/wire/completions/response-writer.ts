import type { GeneratedChoice, Generation } from "../../generation/accumulate.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { passedMembers } from "../extras.ts";
import { answerIdentity } from "../identity.ts";
import type { JsonValue } from "../json-text.ts";
import { jsonText } from "../json-text.ts";
import { completionUsage, timingsObject } from "../usage.ts";
import { completionLogprobs } from "./completion-logprobs.ts";
import { completionFinishReason } from "./finish-reason.ts";
import { textOffset } from "./text-offset.ts";

type Members = { [name: string]: JsonValue | undefined };

/**
 * The body of a legacy completion that is not streamed. Profile `openai`: pretty, with a final line feed (wire.md section 4);
 * `lean`: compact, and with `system_fingerprint`.
 */
export function writeCompletionResponse(generation: Generation, context: ChoicesContext): string {
  const isLean = context.profile.name === "lean";
  const { id, created, model, systemFingerprint } = answerIdentity(context, "cmpl-", generation.source);
  const { usage, timings } = generation;
  const body: Members = {
    id,
    object: "text_completion",
    created,
    model,
    ...(isLean && { system_fingerprint: systemFingerprint }),
    choices: generation.choices.map((choice) => choiceObject(choice, context)),
    ...(usage && { usage: completionUsage(usage, context) }),
    ...(usage && timings && context.asked.includeTimings && { timings: timingsObject(timings, usage) }),
  };
  for (const event of generation.extras) {
    if (event.place === "chunk") for (const [name, value] of passedMembers(event, context)) body[name] ??= value;
  }
  return isLean ? jsonText(body) : `${jsonText(body, 2)}\n`;
}

function choiceObject({ choice, text, textLogprobs, finish }: GeneratedChoice, context: ChoicesContext): Members {
  const { asked, capture, profile } = context;
  const showsLogprobs = (asked.logprobs || capture !== undefined) && textLogprobs !== null;
  return {
    text: text ?? "",
    index: choice,
    logprobs: showsLogprobs ? completionLogprobs(textLogprobs, textOffset(choice, asked), profile).value : null,
    finish_reason: finish ? completionFinishReason(finish.reason) : null,
    ...(asked.includeStopString && finish?.stop !== undefined && { stop_str: finish.stop }),
  };
}
