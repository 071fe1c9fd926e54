import * as z from "zod";
import { truncationModes } from "../../wire/apis/adapt/truncation.ts";
import { limitsOfKey } from "./keys-schema.ts";
import { sourceApis } from "../../wire/apis/source-port.ts";
import { anyText, decimal, expected, flag, integer, listShape, mappingOf, oneOf, settings, text } from "./shapes.ts";
import { bytes, duration, time } from "./units.ts";
import { answerSettings, modelName, toolFormat } from "./answer-schema.ts";
import { adaptationSwitches, member, requestsSchema } from "./requests-schema.ts";

const urlError = expected("the base URL of a server, such as http://localhost:11434/v1, or a list of them");
const keepAliveError = expected("seconds, a time such as 30m, or -1 to keep it loaded");
const baseUrl = z.url({ protocol: /^https?$/, error: urlError });
const servedModels = "a mapping such as { name: upstream-name } or a list of names";

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

export const upstreamModel = settings(
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
    ...answerSettings,
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

function underTheirOwnNames(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, name]));
}
