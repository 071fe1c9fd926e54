import type { Generation } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { CaptureForm, ChoiceForm } from "../capture-form.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import type { Profile } from "../profile.ts";
import { chatForms } from "./form.ts";
import type { ChatChoiceForm, ChatForm } from "./form.ts";
import { writeChatResponse } from "./response-writer.ts";
import { ChatStreamWriter } from "./stream-writer.ts";

/** Writes an answer of OpenAI's again that was read from a captured stream. `batches`: its events. */
export function writeChatCapture(
  batches: readonly (readonly GenerationEvent[])[],
  context: ChoicesContext,
  capture: CaptureForm,
): string {
  const writer = new ChatStreamWriter(context, captureForms[context.profile.name](capture));
  return batches.map((batch) => writer.write(batch)).join("");
}

/** The same for an answer that was not streamed. */
export function writeChatCaptureBody(generation: Generation, context: ChoicesContext, capture: CaptureForm): string {
  return writeChatResponse(generation, context, captureForms[context.profile.name](capture));
}

/** Which of a capture's freedoms a profile keeps. */
const captureForms: Readonly<Record<Profile["name"], (capture: CaptureForm) => ChatForm>> = {
  lean: ({ usage }) => ({ ...chatForms.lean, nullUsage: usage }),
  exact: (capture) => ({
    ...chatForms.exact,
    serviceTier: capture.serviceTier ? null : undefined,
    systemFingerprint: capture.systemFingerprint,
    logprobsKey: capture.logprobs,
    obfuscates: capture.obfuscation,
    nullUsage: capture.usage,
    usageZeros: undefined,
    choice: (index) => choiceForm(chatForms.exact.choice(index), capture.choices.get(index)),
  }),
};

function choiceForm(live: ChatChoiceForm, recorded: ChoiceForm | undefined): ChatChoiceForm {
  if (!recorded) return { ...live, namedCallStops: false };
  const { content, refusal } = recorded;
  const first = { content, refusal };
  return {
    first: { text: first, refusal: first, call: first, calls: first },
    waitsAfter: recorded.callInFirstDelta ? [undefined, "tool-call", "tool-calls", "refusal"] : [],
    callInFirstDelta: true,
    emptyLogprobs: recorded.emptyLogprobs === true,
    namedCallStops: recorded.stopWithCalls === true,
    refusal,
    annotations: recorded.annotations === true,
  };
}
