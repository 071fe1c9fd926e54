import type { Generation, GeneratedChoice } from "../../core/accumulate.ts";
import type { ChoicesContext } from "../choices-answer.ts";
import { allowedExtras, callExtras } from "../extras.ts";
import { answerIdentity, shownTier } from "../identity.ts";
import type { JsonValue } from "../json-text.ts";
import { jsonText } from "../json-text.ts";
import { chatLogprobs } from "../logprobs.ts";
import { promptMembers } from "../prompt-report.ts";
import { orderedMembers } from "../members.ts";
import { charactersOf, chatUsage, estimatedUsage, timingsObject } from "../usage.ts";
import { chatAnnotation } from "./annotations.ts";
import { chatForms, finishReason, reasoningFields, shownDetails, showsLogprobsKey } from "./form.ts";
import type { ChatForm } from "./form.ts";
import type { Details } from "./reasoning-details.ts";
import { detailsFor } from "./shown-details.ts";
import { chatChoice, chatCompletion, chatMessage } from "./schema.ts";
import { writeCalls } from "./write-messages.ts";

type Members = { [name: string]: JsonValue | undefined };

/** Writes the body of a chat answer that is not streamed. Members of the schema are in its order, those that a source adds after them. */
export function writeChatResponse(generation: Generation, context: ChoicesContext): string {
  const form = chatForms[context.profile.name];
  const { requested: asked } = context;
  const { choices, timings, source } = generation;
  const characters = choices.reduce((sum, choice) => sum + charactersOf(choice), 0);
  const usage = generation.usage ?? estimatedUsage(asked.estimatePrompt, characters);
  const { id, created, model, systemFingerprint } = answerIdentity(context, "chatcmpl-", source);
  const members: Members = {
    id,
    object: "chat.completion",
    created,
    model,
    choices: choices.map((choice) => choiceObject(choice, generation, context, form)),
    ...(usage && { usage: chatUsage(usage, form.usageZeros) }),
    ...(usage && timings && asked.includeTimings && { timings: timingsObject(timings, usage) }),
    service_tier: shownTier(form.serviceTier, context, source),
    system_fingerprint: systemFingerprint,
  };
  const body = Object.assign(
    orderedMembers(chatCompletion, members),
    generation.prompts?.[0] && promptMembers(generation.prompts[0], asked),
    extraMembers(generation, context, undefined, "chunk"),
  );
  return jsonText(body, form.body.indent) + form.body.end;
}

function choiceObject(
  choice: GeneratedChoice,
  generation: Generation,
  context: ChoicesContext,
  form: ChatForm,
): Members {
  const { requested: asked } = context;
  const choiceForm = form.choice;
  const logprobs = asked.logprobs ? chatLogprobs(choice.textLogprobs, choice.refusalLogprobs, form.number) : null;
  const members: Members = {
    index: choice.choice,
    message: message(choice, generation, context, form),
    logprobs: showsLogprobsKey(form, context) ? logprobs : undefined,
    finish_reason: choice.finish ? finishReason(choice.finish.reason, asked, choiceForm) : null,
    stop_str: asked.includeStopString ? choice.finish?.stop : undefined,
    token_ids: asked.includeTokenIds && choice.tokens ? [...choice.tokens] : undefined,
  };
  return Object.assign(orderedMembers(chatChoice, members), extraMembers(generation, context, choice.choice, "choice"));
}

function message(choice: GeneratedChoice, generation: Generation, context: ChoicesContext, form: ChatForm): Members {
  const choiceForm = form.choice;
  const { annotations, audio, ...extras } = extraMembers(generation, context, choice.choice, "delta");
  const reasoning: Members = {};
  if (choice.reasoning !== null)
    for (const field of reasoningFields(form, context)) reasoning[field] = choice.reasoning;
  const members: Members = {
    role: "assistant",
    content: content(choice),
    ...reasoning,
    ...callsOf(choice, context),
    refusal: choice.refusal ?? choiceForm.refusal,
    audio,
    annotations: annotations ?? ownAnnotations(choice) ?? (choiceForm.annotations ? [] : undefined),
  };
  const details = reasoningDetails(choice, context, form);
  return Object.assign(
    orderedMembers(chatMessage, members),
    details.length > 0 && { reasoning_details: details as JsonValue },
    extras,
  );
}

/** The citations of a choice, whose texts are one text here. */
function ownAnnotations({ parts }: GeneratedChoice): JsonValue | undefined {
  const annotations: JsonValue[] = [];
  let before = 0;
  for (const part of parts) {
    if (part.type !== "text") continue;
    for (const annotation of part.annotations) annotations.push(...chatAnnotation(annotation, before));
    before += part.text.length;
  }
  return annotations.length > 0 ? annotations : undefined;
}

/** The states of a choice's reasoning, in order. */
function reasoningDetails({ parts }: GeneratedChoice, context: ChoicesContext, form: ChatForm): Details {
  const shown = shownDetails(form, context);
  const entries: Details[number][] = [];
  for (const part of parts)
    if (part.type === "reasoning" && part.state)
      entries.push(...detailsFor({ ...part, state: part.state }, entries.length, shown, context));
  return entries;
}

/** The calls of a choice, with the members that the source added to them. */
function callsOf({ toolCalls }: GeneratedChoice, context: ChoicesContext): Members {
  const { tool_calls: calls, ...legacy } = writeCalls(toolCalls, context.requested.legacyFunctions);
  if (!Array.isArray(calls)) return legacy;
  const withExtras = calls.map((call, at) =>
    Object.assign(call as Members, Object.fromEntries(callExtras(toolCalls[at] ?? {}, context))),
  );
  return { tool_calls: withExtras as JsonValue };
}

/** Returns `null` for a message of only calls or a refusal, and `""` for an empty message. */
function content({ text, toolCalls, refusal }: GeneratedChoice): string | null {
  if (text !== null && (text !== "" || toolCalls.length === 0)) return text;
  return toolCalls.length > 0 || refusal !== null ? null : "";
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
    for (const [name, value] of allowedExtras(event, context)) members[name] = value;
  }
  return members;
}
