import type { GeneratedChoice, Generation } from "../../core/accumulate.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { allowedExtras } from "../extras.ts";
import { answerIdentity } from "../identity.ts";
import type { JsonValue } from "../json-text.ts";
import { jsonText } from "../json-text.ts";
import { promptMembers } from "../prompt-report.ts";
import { charactersOf, estimatedUsage, timingsObject } from "../usage.ts";
import { completionLogprobs } from "./completion-logprobs.ts";
import { completionForms, completionFinishReason, textOffset } from "./form.ts";
import type { CompletionForm } from "./form.ts";

type Members = { [name: string]: JsonValue | undefined };

/** Writes the body of a legacy completion that is not streamed. Its members are in the order of `completion`. */
export function writeCompletionResponse(generation: Generation, context: ChoicesContext): string {
  const form = completionForms[context.profile.name];
  const { id, created, model, systemFingerprint } = answerIdentity(context, "cmpl-", generation.source);
  const { choices, timings } = generation;
  const characters = choices.reduce((sum, choice) => sum + charactersOf(choice), 0);
  const usage = generation.usage ?? estimatedUsage(context.requested.estimatePrompt, characters);
  const body: Members = {
    id,
    object: "text_completion",
    created,
    model,
    ...(form.systemFingerprint && { system_fingerprint: systemFingerprint }),
    choices: choices.map((choice) => choiceObject(choice, generation, context, form)),
    ...(usage && { usage: form.usage(usage) }),
    ...(usage && timings && context.requested.includeTimings && { timings: timingsObject(timings, usage) }),
  };
  for (const event of generation.extras) {
    if (event.place === "chunk") for (const [name, value] of allowedExtras(event, context)) body[name] ??= value;
  }
  return jsonText(body, form.body.indent) + form.body.end;
}

function choiceObject(
  { choice, text, textLogprobs, tokens: ids, finish }: GeneratedChoice,
  { prompts }: Generation,
  { requested: asked }: ChoicesContext,
  form: CompletionForm,
): Members {
  const tokens = asked.logprobs ? textLogprobs : null;
  const promptIndex = Math.floor(choice / (asked.textOffsets?.choicesPerPrompt ?? 1));
  const prompt = prompts?.find(({ prompt }) => prompt === promptIndex);
  return {
    text: text ?? "",
    index: choice,
    logprobs: tokens && completionLogprobs(tokens, textOffset(choice, asked), form.number).value,
    finish_reason: finish ? completionFinishReason(finish.reason) : null,
    ...(asked.includeTokenIds && ids && { token_ids: [...ids] }),
    ...(prompt && promptMembers(prompt, asked)),
    ...(asked.includeStopString && finish?.stop !== undefined && { stop_str: finish.stop }),
  };
}
