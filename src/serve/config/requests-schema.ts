import * as z from "zod";
import { adaptationNames } from "../../wire/apis/adapt/adaptation-names.ts";
import type { AdaptationName } from "../../wire/apis/adapt/adaptation-names.ts";
import {
  demandedStates,
  outputFormats,
  reasoningMembers,
  schemaCompilers,
  stateMembers,
  toolChoiceForms,
} from "../../wire/apis/adapt/server-profile.ts";
import { expected, flag, integer, listShape, mappingOf, oneOf, settings, text } from "./shapes.ts";

/** `off` is a string in YAML 1.2. */
const adaptationSwitch = z
  .union([z.boolean(), z.enum(["on", "off"])], { error: expected("on or off") })
  .transform((state) => state === true || state === "on")
  .optional();
export const adaptationSwitches = Object.fromEntries(adaptationNames.map((name) => [name, adaptationSwitch])) as {
  [Name in AdaptationName]: typeof adaptationSwitch;
};

export const member = text("the name of a member, such as logit_bias");

/** What an upstream accepts: `requests` of the configuration, and the profiles in the file of learned ones. */
export const requestsSchema = settings(
  {
    instructionRole: oneOf(["system", "developer", "any"])
      .optional()
      .describe("The role of instructions (default: system for chat servers; any leaves it as it is)"),
    systemMessages: oneOf(["anywhere", "first", "none"])
      .optional()
      .describe("Whether it accepts system messages anywhere, only one at the beginning, or none (default first)"),
    repeatedRoles: flag()
      .optional()
      .describe("It accepts consecutive messages of one role; without, they are joined (default true)"),
    imageUrls: flag().optional().describe("It downloads images from URLs (default true)"),
    imageTypes: listShape(text("a media type, such as image/png"), "a list such as [image/png, image/jpeg]")
      .optional()
      .describe("The types of images that it accepts; others are converted, which needs the package sharp"),
    maxImageSide: integer(16)
      .optional()
      .describe("The longest side of an image in pixels; larger ones are made smaller, which needs the package sharp"),
    schemaCompiler: oneOf(schemaCompilers)
      .optional()
      .describe("What compiles JSON Schemas there: schemas are sent without what it does not know"),
    extensions: flag()
      .optional()
      .describe("It accepts members that other servers added to OpenAI's APIs, such as top_k (default true)"),
    userAfterTool: flag().optional().describe("It accepts a user's message after the result of a tool (default true)"),
    contentParts: flag()
      .optional()
      .describe(
        "It accepts texts as lists of parts (default: plain texts are sent as one string); false: no list of texts",
      ),
    toolNames: oneOf(["any", "short"])
      .optional()
      .describe("The names of tools that it accepts: any (the default), or up to 64 letters, digits, _ and -"),
    tools: flag().optional().describe("It accepts tools; without, they are left out (default true)"),
    customTools: flag()
      .optional()
      .describe("It accepts custom tools; without, they are sent as functions (default false; with Responses true)"),
    anyArguments: flag()
      .optional()
      .describe(
        "It accepts earlier calls whose arguments are not a JSON object (default false: they are put into one)",
      ),
    toolChoices: listShape(oneOf(toolChoiceForms), "a list such as [none, auto, required]")
      .optional()
      .describe("The forms of tool_choice that it accepts: none, auto, required, named (default: all)"),
    parallelCalls: flag().optional().describe("It accepts parallel_tool_calls (default true)"),
    outputFormats: listShape(oneOf(outputFormats), "a list such as [json_object]")
      .optional()
      .describe("The types of response_format that it accepts: json_object, json_schema (default: all)"),
    strictSchemas: flag().optional().describe("It accepts strict in schemas (default true)"),
    refusedKeywords: listShape(member, "a list of keywords, such as [pattern]")
      .optional()
      .describe("Keywords of JSON Schema that it refuses or ignores"),
    images: flag().optional().describe("It accepts images; without, a text replaces them (default true)"),
    toolImages: flag().optional().describe("It accepts images in the results of tools (default false)"),
    files: flag().optional().describe("It accepts files (default true)"),
    severalChoices: flag()
      .optional()
      .describe("It accepts n above 1; without, several choices become several requests (default true)"),
    logprobs: flag().optional().describe("It accepts logprobs; without, requests for them are refused (default true)"),
    maxTokensMember: oneOf(["max_tokens", "max_completion_tokens"])
      .optional()
      .describe("The member that limits the answer's length (default: the client's)"),
    reasoningEffort: flag()
      .optional()
      .describe("It accepts reasoning_effort for every model (default: only for models that are known to reason)"),
    reasoningBudget: flag().optional().describe("It accepts thinking_token_budget (default false)"),
    templateVariables: flag()
      .optional()
      .describe("It gives chat_template_kwargs to the chat template, which can switch reasoning off (default false)"),
    reasoningDemand: oneOf(["calls", "all"])
      .optional()
      .describe("Its messages of the assistant that must have reasoning, if only an empty one: with calls, or all"),
    reasoningHistory: flag()
      .optional()
      .describe(
        "It accepts the reasoning of earlier turns (default true); with Responses or Messages, true: it reads the text of reasoning, which need not be encrypted or signed",
      ),
    encryptedReasoning: flag().optional().describe("With Responses: it encrypts reasoning on request (default true)"),
    itemIds: flag()
      .optional()
      .describe("With Responses: the ids of earlier messages and calls are sent to it (default true)"),
    reasoningMember: oneOf(reasoningMembers)
      .optional()
      .describe(
        "The member in which it expects the reasoning of earlier turns; content: as a part of type thinking (default reasoning_content)",
      ),
    states: listShape(oneOf(stateMembers), "a list of members, such as [extra_content]")
      .optional()
      .describe("The members with states of earlier turns that it takes (default: all)"),
    stateDemand: oneOf(demandedStates)
      .optional()
      .describe("The member that every message with calls must have; a documented value stands in for a missing one"),
    streamOptions: flag().optional().describe("It accepts stream_options (default true)"),
    callIds: oneOf(["any", "nine"])
      .optional()
      .describe("The ids of calls that it accepts: any (the default), or those of nine letters or digits"),
    sharedMembers: flag()
      .optional()
      .describe("It accepts members that OpenAI's APIs have in common, such as metadata (default false)"),
    legacyFunctions: flag().optional().describe("It knows only the legacy functions"),
    contextSize: integer(1).optional().describe("Its context size, in tokens (default: from its model list)"),
    truncates: flag().optional().describe("It shortens prompts that are too long, without an error (default false)"),
    tokenizer: text("a path such as /tokenize")
      .optional()
      .describe("The path, from its root, at which it counts the tokens of a text"),
    cacheMarks: flag()
      .optional()
      .describe(
        "It caches prompts up to marks in them, cache_control (default true for servers with the Messages API)",
      ),
    automaticCache: flag()
      .optional()
      .describe(
        "Requests without a mark get one for the whole prompt, cache_control (default true for servers with the Messages API)",
      ),
    hostedTools: flag()
      .optional()
      .describe(
        "It runs the tools that its API's vendor runs, such as web_search: they are sent to it (default true for vendors' own servers; for others, they are sent unless hostedTools of this server runs them)",
      ),
    cacheReport: flag().optional().describe("It reports in usage how many tokens its prompt cache had"),
    drop: listShape(member, "a list of members, such as [logit_bias]")
      .optional()
      .describe("Members that it does not accept"),
    dropInMessages: listShape(member, "a list of members, such as [name]")
      .optional()
      .describe("Members of messages that it does not accept"),
    rename: mappingOf(member, "a mapping such as { max_tokens: max_new_tokens }")
      .optional()
      .describe("Members that have another name there: OpenAI's name, then its name"),
    add: mappingOf(z.unknown(), "a mapping such as { top_k: 40 }")
      .optional()
      .describe("Members that are added to every request"),
  },
  "a mapping such as { drop: [logit_bias] }",
);
