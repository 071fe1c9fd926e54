import type { Generation, GeneratedChoice } from "../../generation/accumulate.ts";
import type { ChoiceForm } from "../capture-form.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { passedMembers } from "../extras.ts";
import { answerIdentity } from "../identity.ts";
import type { JsonValue } from "../json-text.ts";
import { jsonText } from "../json-text.ts";
import { chatLogprobs } from "../logprobs.ts";
import { chatUsage, timingsObject } from "../usage.ts";
import { finishReason } from "./finish-reason.ts";
import { showsLogprobsKey } from "./logprobs-key.ts";
import { reasoningFields } from "./reasoning-fields.ts";

type Members = { [name: string]: JsonValue | undefined };

/**
 * The body of a chat answer that is not streamed. Profile `openai`: pretty, with a final line feed, members in the order of
 * wire.md section 3; `lean`: compact. Requirements N1 to N5.
 */
export function writeChatResponse(generation: Generation, context: ChoicesContext): string {
  const { profile, capture, asked } = context;
  const isLean = profile.name === "lean";
  const { id, created, model, systemFingerprint, serviceTier } = answerIdentity(
    context,
    "chatcmpl-",
    generation.source,
  );
  const { usage, timings } = generation;
  const body: Members = {
    id,
    object: "chat.completion",
    created,
    model,
    choices: generation.choices.map((choice) => choiceObject(choice, generation, context)),
    ...(usage && { usage: chatUsage(usage, context) }),
    ...(usage && timings && asked.includeTimings && { timings: timingsObject(timings, usage) }),
    service_tier: serviceTier,
    system_fingerprint: isLean || (capture?.systemFingerprint ?? true) ? systemFingerprint : undefined,
    ...extraMembers(generation, context, undefined, "chunk"),
  };
  return isLean ? jsonText(body) : `${jsonText(body, 2)}\n`;
}

function choiceObject(choice: GeneratedChoice, generation: Generation, context: ChoicesContext): Members {
  const { profile, capture, asked } = context;
  const form = capture?.choices.get(choice.choice);
  const mayHaveLogprobs = asked.logprobs || capture !== undefined;
  const logprobs = mayHaveLogprobs ? chatLogprobs(choice.textLogprobs, choice.refusalLogprobs, profile) : null;
  const stop = asked.includeStopString ? choice.finish?.stop : undefined;
  return {
    index: choice.choice,
    message: message(choice, generation, context, form),
    logprobs: showsLogprobsKey(context) ? logprobs : undefined,
    finish_reason: choice.finish ? finishReason(choice.finish.reason, context, form) : null,
    stop_str: stop,
    ...extraMembers(generation, context, choice.choice, "choice"),
  };
}

function message(
  choice: GeneratedChoice,
  generation: Generation,
  context: ChoicesContext,
  form: ChoiceForm | undefined,
): Members {
  const isLean = context.profile.name === "lean";
  const { annotations, ...extras } = extraMembers(generation, context, choice.choice, "delta");
  const reasoning: Members = {};
  if (choice.reasoning !== null) for (const field of reasoningFields(context)) reasoning[field] = choice.reasoning;
  return {
    role: "assistant",
    content: content(choice),
    ...reasoning,
    ...calls(choice, context, form),
    refusal: refusal(choice, isLean, form),
    ...extras,
    annotations: annotations ?? (isLean || (form && form.annotations !== true) ? undefined : []),
  };
}

/** Null where there is nothing but calls or a refusal; a text of no characters is one still. */
function content({ text, toolCalls, refusal }: GeneratedChoice): string | null {
  if (text !== null && (text !== "" || toolCalls.length === 0)) return text;
  return toolCalls.length > 0 || refusal !== null ? null : "";
}

function calls({ toolCalls }: GeneratedChoice, { asked }: ChoicesContext, form: ChoiceForm | undefined): Members {
  const [first] = toolCalls;
  if (!first) return {};
  if (asked.legacyFunctions || form?.functionCall) {
    return { function_call: { name: first.name, arguments: first.arguments } };
  }
  return {
    tool_calls: toolCalls.map(({ id, kind, name, arguments: text }) =>
      kind === "custom"
        ? { id, type: kind, custom: { name, input: text } }
        : { id, type: kind, function: { name, arguments: text } },
    ),
  };
}

/** `lean` shows a refusal where there is one; `openai` always has the member, a capture as it had. */
function refusal(choice: GeneratedChoice, isLean: boolean, form: ChoiceForm | undefined): string | null | undefined {
  if (choice.refusal !== null || isLean) return choice.refusal ?? undefined;
  return form ? form.refusal : null;
}

function extraMembers(
  { extras }: Generation,
  context: ChoicesContext,
  choice: number | undefined,
  place: "chunk" | "choice" | "delta",
): Members {
  const members: Members = {};
  for (const event of extras) {
    if (event.place !== place || event.choice !== choice) continue;
    for (const [name, value] of passedMembers(event, context)) members[name] = value;
  }
  return members;
}
