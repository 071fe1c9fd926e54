import * as z from "zod";
import type { Program } from "../../wire/apis/chat/program.ts";
import type { Engine } from "../../wire/core/engine.ts";
import { chatServiceTiers } from "../../wire/apis/chat/schema.ts";
import { fallbackReasons } from "../../wire/core/failure.ts";
import { formatSchema } from "../../text/formats/read-format.ts";
import { truncationModes } from "../../wire/apis/adapt/truncation.ts";
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
import { limitsOfKey } from "./keys-schema.ts";
import { sourceApis } from "../../wire/apis/source-port.ts";
import {
  anyText,
  decimal,
  expectation,
  expected,
  flag,
  integer,
  listShape,
  mappingOf,
  oneOf,
  settings,
  text,
  wholeNumber,
} from "./shapes.ts";
import type { Parsed, Written } from "./shapes.ts";
import { bytes, duration, time } from "./units.ts";

/** `off` is a string in YAML 1.2. */
const adaptationSwitch = z
  .union([z.boolean(), z.enum(["on", "off"])], { error: expected("on or off") })
  .transform((state) => state === true || state === "on")
  .optional();
const adaptationSwitches = Object.fromEntries(adaptationNames.map((name) => [name, adaptationSwitch])) as {
  [Name in AdaptationName]: typeof adaptationSwitch;
};

/** `openai` is the older name of `exact`. */
export const wireSchema: z.ZodType<"lean" | "exact", "lean" | "exact" | "openai"> = z
  .enum(["lean", "exact", "openai"], { error: expected("lean or exact") })
  .transform((name) => (name === "openai" ? "exact" : name))
  .describe("The form of the answers: lean or exact (openai is the older name of exact)");

const urlError = expected("the base URL of a server, such as http://localhost:11434/v1, or a list of them");
const keepAliveError = expected("seconds, a time such as 30m, or -1 to keep it loaded");
const baseUrl = z.url({ protocol: /^https?$/, error: urlError });
const member = text("the name of a member, such as logit_bias");
const modelName = text("the name of a model, such as gpt-4o-mini");

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

/** The name of a format or a description of one. */
const toolFormat = z
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
const answer = {
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

const servedModels = "a mapping such as { name: upstream-name } or a list of names";
const ggufFile = "a GGUF file, such as models/llama.gguf, or hf:owner/repo";

const cacheTypes = ["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"] as const;

const proportionsError = expected("a list of numbers such as [3, 1], not all of them 0");
/** A list of numbers; as an option it is a text. */
const proportions = z
  .union(
    [
      z.array(decimal(0)),
      z
        .string()
        .regex(/^\d+(\.\d+)?(,\d+(\.\d+)?)*$/)
        .transform((text) => text.split(",").map(Number)),
    ],
    { error: proportionsError },
  )
  .refine((numbers) => numbers.some((number) => number !== 0), { error: proportionsError });

const adapter = settings(
  {
    path: text("a GGUF file, such as style.gguf").describe("A GGUF file"),
    scale: decimal(-100, 100).optional().describe("How much of it is used where a request does not say (default 1)"),
  },
  "a mapping such as { path: style.gguf, scale: 0.5 }",
);

const draftFile = "a GGUF file, such as models/small.gguf, or hf:owner/repo";
/** A mapping, or only its path, as with --draft. */
const draft = z.union(
  [
    text(draftFile).transform((path): { path: string; maxTokens?: number | undefined } => ({ path })),
    settings(
      {
        path: text(draftFile).describe("A GGUF file, or hf:owner/repo[:quant]"),
        maxTokens: integer(1, 16)
          .optional()
          .describe("Draft tokens of an answer at most, 1 to 16 (default 15; 8 for recurrent models)"),
      },
      "a mapping such as { path: small.gguf, maxTokens: 4 }",
    ),
  ],
  { error: expected(`${draftFile}, or a mapping such as { path: small.gguf, maxTokens: 4 }`) },
);

const local = settings(
  {
    kind: z.literal("local"),
    path: text(ggufFile).describe("A GGUF file, or hf:owner/repo[:quant]"),
    ...answer,
    contextSize: integer(1).optional().describe("Tokens of prompt and answer together, for each slot"),
    slots: integer(1).optional().describe("Number of answers that are generated in parallel (default 4)"),
    threads: integer(1).optional().describe("CPU threads (default: all cores but one)"),
    gpu: z
      .union([z.enum(["auto", "off"]), integer(0)], { error: expected("auto, off or a number of layers") })
      .optional()
      .describe("Layers on a GPU: as many as fit (auto), none (off), or their number (default auto)"),
    splitMode: oneOf(["none", "layer", "row", "tensor"])
      .optional()
      .describe(
        "How several GPUs share the model: by layers (layer, the default), each layer (row, tensor), or one has all (none)",
      ),
    tensorSplit: proportions.optional().describe("How much each GPU gets, in proportion, such as [3, 1]"),
    mainGpu: integer(0).optional().describe("The GPU that is used alone with splitMode: none (default 0)"),
    flashAttention: oneOf(["auto", "on", "off"])
      .optional()
      .describe("Flash attention (default auto: where it is not slower)"),
    cacheTypeK: oneOf(cacheTypes).optional().describe("How the keys of attention are kept (default f16)"),
    cacheTypeV: oneOf(cacheTypes)
      .optional()
      .describe("How its values are kept; a quantized type needs flash attention (default f16)"),
    cacheMemory: bytes
      .optional()
      .describe(
        "Size of the prompt cache, in addition to the slots (default: as much as the slots have, at most 512MiB)",
      ),
    keepCache: text("a folder, such as /var/lib/truewire/cache")
      .optional()
      .describe("Where what the model knows of conversations is kept over a restart (default: nowhere)"),
    adapters: listShape(adapter, "a list such as [{ path: style.gguf }]")
      .optional()
      .describe("Changes of the model (LoRA), which requests may use: mappings with a path and a scale"),
    mmproj: text("a GGUF file, such as mmproj-F16.gguf, or off")
      .optional()
      .describe(
        "The model's projector, with which it takes images, or off (default: the one next to the model's file)",
      ),
    llamaLibraries: text("a folder, such as /opt/llama.cpp/bin")
      .optional()
      .describe("A folder with llama.cpp's libraries of version 0.5.0 (default: those of node-llama-cpp)"),
    batchSize: integer(1).optional().describe("The most tokens that are evaluated in one pass (default 512)"),
    maxTokenGap: time
      .optional()
      .describe("How long the processing of a prompt may delay the next token of running answers (default 250ms)"),
    chatTemplate: text("a file with a Jinja template, such as chat.jinja")
      .optional()
      .describe("A file with a Jinja chat template, in place of the model's own"),
    toolFormat: toolFormat.describe(
      "How the model writes tool calls and reasoning (default: found from the chat template)",
    ),
    constrainCalls: flag()
      .optional()
      .describe("Hold calls to the schemas of their tools, also of tools without strict (default true)"),
    speculation: oneOf(["auto", "off"])
      .optional()
      .describe(
        "Guess how answers go on where their text repeats: where that is faster (auto, the default) or never (off)",
      ),
    draft: draft
      .optional()
      .describe(
        "A small model that drafts how answers continue, where that is faster: a GGUF file, or a mapping with a path and maxTokens",
      ),
    pooling: oneOf(["mean", "cls", "last", "rank", "none"])
      .optional()
      .describe(
        "How one vector is made of those of a text's tokens; rank scores documents, none makes no embeddings (default: as the file says)",
      ),
    queueLimit: integer(0)
      .optional()
      .describe("Answers that may wait for a slot, of each key; more are refused with 429 (default 64)"),
    stepTimeout: time
      .refine((ms) => ms >= 1000, { error: expected("a time of 1s or more, such as 2m") })
      .optional()
      .describe("A model that makes no progress on a step for this long is restarted (default 2m)"),
    loadTimeout: time
      .refine((ms) => ms >= 1000, { error: expected("a time of 1s or more, such as 10m") })
      .optional()
      .describe("A load that makes no progress for this long fails (default 10m)"),
    modelsFolder: text("a folder, such as /var/lib/models").optional().describe("Where hf: models are stored"),
    load: oneOf(["eager", "lazy", "manual"])
      .optional()
      .describe(
        "When it is loaded: at the start (eager, the default), with the first request (lazy), or by hand (manual)",
      ),
    idleUnload: time.optional().describe("The model is unloaded after it has been idle for this long (default: never)"),
    keep: flag().optional().describe("The model is never unloaded in favor of another model"),
    defaults: settings(
      {
        temperature: decimal(0).optional(),
        topP: decimal(0, 1).optional(),
        topK: wholeNumber(0).optional(),
        minP: decimal(0, 1).optional(),
        repeatPenalty: decimal(0).optional(),
        frequencyPenalty: decimal(-2, 2).optional(),
        presencePenalty: decimal(-2, 2).optional(),
        seed: wholeNumber().optional(),
        maxTokens: wholeNumber(1).optional(),
        maxStringTokens: wholeNumber(1)
          .optional()
          .describe(
            "The most tokens of one string, where a grammar holds JSON: for small models, which do not find the end",
          ),
        maxReasoningTokens: wholeNumber(0)
          .optional()
          .describe("Maximum number of reasoning tokens of an answer, where the request sets no budget for them"),
      },
      "a mapping such as { temperature: 0.7 }",
    )
      .optional()
      .describe("Values for requests that do not set them"),
  },
  "a mapping such as { kind: local, path: model.gguf }",
).describe("A GGUF file, run by llama.cpp");

const passedPaths = "a list of paths below /v1, such as [/images/*, /audio/speech]";
const passedPath = z
  .string({ error: expected(passedPaths) })
  .regex(/^\/[^?#\s]+$/, { error: expected("a path such as /images/*") })
  .transform((path) => path.replace(/^\/v1(?=\/)/, ""));

const poolText =
  "a key such as ${OPENAI_API_KEY}, a command such as { command: gcloud auth print-access-token, expires: 50m }, or a list of keys such as [${KEY_A}, { key: ${KEY_B}, weight: 2 }]";
const oneKey = text(poolText);
const weighted = settings(
  {
    key: oneKey.describe("A key"),
    weight: decimal(0.01, 100).default(1).describe("Its share of the conversations, compared with others (default 1)"),
  },
  poolText,
);
const commandText = "a command such as gcloud auth print-access-token, or a list such as [sh, -c, cat token | base64]";
const shareText = "a secret of at least 16 characters, such as ${TOKEN_SECRET}";
const keyCommand = {
  command: z
    .union(
      [
        text(commandText).transform((line) => line.split(" ").filter((part) => part !== "")),
        listShape(anyText("an argument, such as -c"), commandText).min(1, { error: expected(commandText) }),
      ],
      { error: expected(commandText) },
    )
    .describe("Prints a key or a token; it is run without a shell, a text is split at spaces"),
  expires: duration("50m", "How long what it prints is valid; it is renewed before that"),
  share: anyText(shareText)
    .min(16, { error: expected(shareText) })
    .optional()
    .describe("Instances with the same store and this secret share what it prints, encrypted with the secret"),
};
const pooledKeys = [
  oneKey.transform((key) => ({ key, weight: 1 })),
  weighted,
  settings({ ...keyCommand, weight: weighted.shape.weight }, poolText),
] as const;
const upstreamKey = z.union(
  [
    oneKey,
    settings(keyCommand, poolText),
    z
      .array(z.union(pooledKeys, { error: expected(poolText) }), { error: expected(poolText) })
      .min(1, { error: expected(poolText) }),
  ],
  { error: expected(poolText) },
);

const authText = "aws, or a mapping such as { kind: aws, region: us-east-1, profile: work }";
const awsAuth = settings(
  {
    kind: z.literal("aws", { error: expected(authText) }),
    region: text("a region, such as us-east-1")
      .optional()
      .describe("Its region (default: the one in the URL, else AWS_REGION)"),
    service: text("a service, such as bedrock")
      .default("bedrock")
      .describe("The service that is signed for (default bedrock)"),
    profile: text("the name of a profile, such as work")
      .optional()
      .describe("The profile in the shared files of AWS (default: AWS_PROFILE, else default)"),
    command: keyCommand.command
      .optional()
      .describe("Prints the keys, as credential_process in AWS's configuration has them"),
  },
  authText,
);

const passKeyText = "true, or the limits of each key, such as { requestsPerMinute: 60, budget: { day: 5 } }";

const upstream = settings(
  {
    kind: z.literal("upstream"),
    url: z
      .union([baseUrl, z.array(baseUrl).min(1, { error: urlError })], { error: urlError })
      .describe("Its base URL; several serve the same models"),
    balance: oneOf(["least-busy", "prefix"])
      .optional()
      .describe(
        "How one of several URLs is chosen: by the fewest open requests (least-busy, the default), or by the beginning of the prompt, so that a conversation stays where its prompt is cached (prefix)",
      ),
    ...answer,
    api: oneOf([...sourceApis, "bedrock", "converse", "vertex"])
      .optional()
      .describe(
        "The API that it speaks: chat, responses, messages (Anthropic's), ollama (Ollama's own), gemini (Google's own), bedrock or vertex (Anthropic's API as Amazon and Google have it), converse (Amazon's Converse, for Anthropic's models) (default: found out, by its list of models unless models are given, and by its answer to the first conversation)",
      ),
    key: upstreamKey
      .optional()
      .describe("Its API key, such as ${OPENAI_API_KEY}; of several, a conversation stays with one while it serves"),
    auth: z
      .union(
        [z.literal("aws", { error: expected(authText) }).transform(() => awsAuth.parse({ kind: "aws" })), awsAuth],
        { error: expected(authText) },
      )
      .optional()
      .describe("Signs each request with keys of AWS, in place of a key"),
    passKey: z
      .union([flag(), settings(limitsOfKey, passKeyText)], { error: expected(passKeyText) })
      .optional()
      .describe(
        "Send the client's own key in place of one of the upstream, with limits for each key, known by its hash (default false)",
      ),
    headers: mappingOf(anyText("a header's value, such as trace-1"), "a mapping such as { x-trace: trace-1 }")
      .optional()
      .describe("Sent with every request"),
    models: z
      .union(
        [
          mappingOf(anyText("the upstream's name of a model, such as qwen3:8b"), servedModels),
          listShape(modelName, servedModels).transform(underTheirOwnNames),
        ],
        {
          error: expected(servedModels),
        },
      )
      .optional()
      .describe("Name for clients: the upstream's name, or a list of names (default: all that it lists)"),
    concurrency: integer(1)
      .optional()
      .describe("Answers that it generates in parallel, with all its URLs; further requests wait (default: no limit)"),
    queueLimit: integer(0)
      .optional()
      .describe("With concurrency: answers that may wait, of each key; more are refused with 429 (default 64)"),
    requests: requestsSchema
      .optional()
      .describe("What it accepts, where that differs from what is known or learned of it"),
    onTruncation: oneOf(truncationModes)
      .optional()
      .describe(
        "An answer to a prompt that the server has cut without an error: refuse it (error, the default), warn, or allow it",
      ),
    strict: flag()
      .optional()
      .describe("Refuse requests that it would not accept, instead of adapting them (default false)"),
    adapt: settings(adaptationSwitches, "a mapping such as { system-as-user: off }")
      .optional()
      .describe("Adaptations of requests that are switched off, by name"),
    singleChoice: flag().optional().describe("It accepts only n: 1, so several choices become several requests"),
    ollama: settings(
      {
        minContext: integer(1).optional().describe("The smallest context that a model is loaded with (default 8192)"),
        maxContext: integer(1).optional().describe("The largest one (default: what the model was trained for)"),
        keepAlive: z
          .union([z.number(), z.string().regex(/^-?(\d+(\.\d+)?(ms|s|m|h))+$/, { error: keepAliveError })], {
            error: keepAliveError,
          })
          .optional()
          .describe("How long a model stays loaded (default: the server's)"),
      },
      "a mapping such as { maxContext: 32768 }",
    )
      .optional()
      .describe("How an Ollama loads its models; only with api: ollama, which is the default for an Ollama"),
    toolFormat: toolFormat.describe(
      "How the models write tool calls and reasoning that it leaves in the text, or auto",
    ),
    timeouts: settings(
      {
        connect: time.optional().describe("Time limit for the connection (default 10s)"),
        firstEvent: time
          .optional()
          .describe("Time limit for the first event, and between events while comments arrive (default 10m)"),
        idle: time.optional().describe("Time limit while nothing arrives (default 2m)"),
      },
      "a mapping such as { firstEvent: 5m }",
    ).optional(),
    retries: integer(0).optional().describe("Further attempts before the first event (default 2)"),
    tls: settings(
      {
        ca: anyText("a PEM file, such as ca.pem").optional().describe("A PEM file"),
        cert: anyText("a PEM file, such as cert.pem").optional().describe("A PEM file"),
        key: anyText("a PEM file, such as key.pem").optional().describe("A PEM file"),
        serverName: anyText("a host name, such as api.example.com").optional(),
        verify: flag().optional().describe("False accepts any certificate"),
      },
      "a mapping such as { ca: ca.pem }",
    ).optional(),
    answerLimit: bytes
      .optional()
      .describe("The largest event, and the largest answer that is not streamed (default 16MiB)"),
    passPaths: listShape(passedPath, passedPaths)
      .optional()
      .describe(
        "Paths that Truewire does not have, to be passed on unchanged, such as /images/*; * matches any text (default: none)",
      ),
    passExtra: z
      .union([z.boolean(), listShape(member, "a list of members")], {
        error: expected("true, false or a list of members such as [citations]"),
      })
      .optional()
      .describe("Members that it adds to OpenAI's, to be passed on: all, or a list (default: none)"),
  },
  "a mapping such as { kind: upstream, url: http://localhost:11434/v1 }",
).describe("A server with an OpenAI API, or nearly one");

/** A program is a path in a file; in code, it may be the program itself. */
export const programSchema: z.ZodType<string | Program | object, string | Program | object> = z.custom<
  string | Program | object
>(
  (value) =>
    (typeof value === "string" && value !== "") ||
    typeof value === "function" ||
    (typeof value === "object" && value !== null && "doStream" in value),
  { error: expected("a file such as ./program.ts; in code also a function or an AI SDK language model") },
);

const programModel = settings(
  {
    kind: z.literal("program"),
    program: programSchema,
    ...answer,
    watch: flag().optional().describe("Reload the program when its file changes"),
    threads: integer(1).optional().describe("Threads for a synchronous program"),
    showErrors: flag()
      .optional()
      .describe("Tell clients the words of any exception (default: only of those that are meant for them)"),
    toolFormat: toolFormat.describe("How it writes calls and reasoning that it leaves in its text"),
  },
  "a mapping such as { kind: program, program: ./program.ts }",
).describe("A module of your own");

export const engineSchema: z.ZodType<Engine, Engine> = z.custom<Engine>(
  (value) => typeof value === "object" && value !== null && "generate" in value,
  { error: expected("an object with the methods of an Engine") },
);

const engineModel = settings(
  {
    kind: z.literal("engine"),
    engine: engineSchema,
    ...answer,
  },
  'an object such as { kind: "engine", engine }',
);

const kindsOfModels = z.discriminatedUnion("kind", [local, upstream, programModel, engineModel], {
  error: ({ input }) => kindError(input),
});

/** A GGUF file, run by llama.cpp. */
export type LocalModel = Written<typeof local>;
/** A server with an OpenAI API, or nearly one. */
export type UpstreamModel = Written<typeof upstream>;
/** The user's own code: a file; in code also the program itself, a model of the AI SDK, or an engine. */
export type ProgramModel = Written<typeof programModel>;
/** An engine made by the caller: in code only. */
export type EngineModel = Written<typeof engineModel>;
export type ModelEntry = LocalModel | UpstreamModel | ProgramModel | EngineModel;

/** The same with numbers as numbers, times in milliseconds, sizes in bytes. */
export type LocalModelConfig = Parsed<typeof local>;
export type UpstreamModelConfig = Parsed<typeof upstream>;
export type ModelConfig = LocalModelConfig | UpstreamModelConfig | ProgramModelConfig | EngineModelConfig;
export type ProgramModelConfig = Parsed<typeof programModel>;
type EngineModelConfig = Parsed<typeof engineModel>;

export const modelKinds: readonly ModelEntry["kind"][] = ["local", "upstream", "program", "engine"];
/** The names of the settings of each kind of model. */
export const settingsOfKinds: Readonly<Record<ModelEntry["kind"], ReadonlySet<string>>> = {
  local: new Set(Object.keys(local.shape)),
  upstream: new Set(Object.keys(upstream.shape)),
  program: new Set(Object.keys(programModel.shape)),
  engine: new Set(Object.keys(engineModel.shape)),
};

/** One entry of `models`. */
export const modelSchema: z.ZodType<ModelConfig, ModelEntry> = kindsOfModels;

const kinds = "local, upstream or program";

function kindError(entry: unknown): string {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry))
    return `expected a target such as model.gguf or http://localhost:11434/v1, or a mapping with a kind: ${kinds}`;
  return "kind" in entry ? `expected ${kinds}` : `is missing; expected ${kinds}`;
}

function underTheirOwnNames(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, name]));
}
