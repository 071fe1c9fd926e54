import * as z from "zod";
import { chatServiceTiers } from "../../wire/apis/chat/schema.ts";
import { fallbackReasons } from "../../wire/core/failure.ts";
import { formatSchema } from "../../text/formats/read-format.ts";
import { anyText, expectation, expected, flag, listShape, mappingOf, oneOf, text } from "./shapes.ts";

/** `openai` is the older name of `exact`. */
export const wireSchema: z.ZodType<"lean" | "exact", "lean" | "exact" | "openai"> = z
  .enum(["lean", "exact", "openai"], { error: expected("lean or exact") })
  .transform((name) => (name === "openai" ? "exact" : name))
  .describe("The form of the answers: lean or exact (openai is the older name of exact)");

export const modelName = text("the name of a model, such as gpt-4o-mini");

/** The name of a format or a description of one. */
export const toolFormat = z
  .union([text("the name of a format, such as hermes"), z.record(z.string(), z.unknown())], {
    error: expected("the name of a format, such as hermes, or a description of one (docs/formats.md)"),
  })
  .superRefine((value, context) => {
    if (typeof value === "string") return;
    const { issues = [] } = formatSchema.safeParse(value, { error: expectation }).error ?? {};
    for (const { path, message } of issues) context.addIssue({ code: "custom", path: [...path], message });
  })
  .optional();

const fallbackModels = "a list of models such as [gpt-4o-mini], or a mapping such as { gpt-4o: [gpt-4o-mini] }";
export const answerSettings = {
  name: modelName.optional().describe("The name that clients use"),
  aliases: listShape(modelName, "a list of names, such as [gpt-4o-mini]")
    .default([])
    .describe("Further names for it; * matches any text, as in claude-*"),
  wire: wireSchema.optional(),
  systemFingerprint: anyText("a text, such as fp_1")
    .optional()
    .describe("The value of system_fingerprint (default null)"),
  serviceTier: oneOf(chatServiceTiers)
    .optional()
    .describe("With wire: exact, the value of service_tier when the source sends none (default: default)"),
  logprobsKey: flag()
    .optional()
    .describe(
      "With wire: exact, whether choices have logprobs when none were requested (default: by the model's name)",
    ),
  standsFor: modelName
    .optional()
    .describe("With wire: exact, the vendor's model whose refusals this model has, too, such as gpt-6-luna"),
  reasoningFields: listShape(oneOf(["reasoning_content", "reasoning"]), "a list such as [reasoning_content, reasoning]")
    .optional()
    .describe("Names of the members that carry reasoning (default reasoning_content)"),
  loopGuard: oneOf(["on", "off"])
    .optional()
    .describe(
      "End an answer that repeats the same text over and over, with finish reason length (default: on for local models, off for others)",
    ),
  fallbacks: z
    .union(
      [
        listShape(modelName, fallbackModels),
        mappingOf(listShape(modelName, "a list of models, such as [gpt-4o-mini]"), fallbackModels),
      ],
      { error: expected(fallbackModels) },
    )
    .optional()
    .describe("Models that answer when it fails before its first output: a list, or for each model a list"),
  fallbackOn: listShape(oneOf(fallbackReasons), "a list such as [connection, server-error]")
    .optional()
    .describe(
      "The kinds of failure after which a fallback is asked (default: connection, timeout, server-error, rate-limit, not-found)",
    ),
};
