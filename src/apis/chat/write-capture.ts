import type { Generation } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { CaptureForm, ChoiceForm } from "../capture-form.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import type { Profile } from "../profile.ts";
import { chatForms } from "./form.ts";
import type { ChatChoiceForm, ChatForm } from "./form.ts";
import { writeChatResponse } from "./write-body.ts";
import { ChatStreamWriter } from "./write-stream.ts";

/** Writes the stream of OpenAI again from which `batches` were read. */
export function writeChatCapture(
  batches: readonly (readonly GenerationEvent[])[],
  context: ChoicesContext,
  capture: CaptureForm,
): string {
  const writer = new ChatStreamWriter(context, captureForms[context.profile.name](capture));
  return batches.map((batch) => writer.write(batch)).join("");
}

/** Writes the body of OpenAI again from which `generation` was read. */
export function writeChatCaptureBody(generation: Generation, context: ChoicesContext, capture: CaptureForm): string {
  return writeChatResponse(generation, context, captureForms[context.profile.name](capture));
}

/** The form of a capture in each profile: which of its peculiarities are kept. */
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
