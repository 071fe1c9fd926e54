import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type * as z from "zod";
import { chatParameters } from "./chat/request.ts";
import { completionParameters } from "./completions/request.ts";
import { geminiGenerationConfig, geminiRequest } from "./gemini/request-schema.ts";
import { membersOf } from "./members.ts";
import { messageParameters } from "./messages/request-schema.ts";
import { extensionParameters } from "./request/extension-parameters.ts";
import { rerankRequest } from "./rerank/schema.ts";
import { transcriptionRequest } from "./transcriptions/schema.ts";
import type { RequestParameter } from "./request/parameter.ts";
import { responsesParameters } from "./responses/parameters.ts";
import { refusalCases } from "../../../test/support/refusal-cases.ts";
import { detokenizeRequest, llamaTokenize, vllmTokenize } from "./tokens/schema.ts";

// docs/parameters.md is generated from the tables that read requests.
// `npx vitest run --project unit src/wire/apis/parameters-page.test.ts -u` writes it anew.
test("docs/parameters.md says what the tables say", async () => {
  await expect(page()).toMatchFileSnapshot("../../../docs/parameters.md");
});

test("no parameter stands twice in a table", () => {
  for (const table of [
    chatParameters,
    completionParameters,
    responsesParameters,
    messageParameters,
  ] as readonly NamedTable[]) {
    const names = table.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
  }
});

const specification = new URL("../../../../shared/openapi/openapi-2026-08-21.yaml", import.meta.url);
const isHere = existsSync(specification);
if (!isHere) console.log("skipped: no ../shared/openapi to compare the parameters with");
if (!isHere) console.log("parameters-page.test.ts: ../shared/openapi is not here; its tests are skipped");

describe.skipIf(!isHere)("against OpenAI's specification", () => {
  test("every documented parameter is in its endpoint's table, and no other calls itself OpenAI's", () => {
    const text = readFileSync(specification, "utf8");
    const documented = (schema: string): string[] => [...propertiesOf(schema, text)].sort();
    const ours = (table: OwnedTable): string[] =>
      table.flatMap(({ name, origin }) => (origin === "openai" ? [name] : [])).sort();
    expect(ours(chatParameters)).toEqual(documented("CreateChatCompletionRequest"));
    // `generate` and `stream_id` are documented for WebSockets alone, `client_metadata` and the penalties nowhere; the others are newer than the
    // specification (openai 7.57 and 7.59).
    const newer = [
      "access_programs",
      "background_options",
      "client_metadata",
      "frequency_penalty",
      "generate",
      "image",
      "presence_penalty",
      "stream_id",
    ];
    expect(ours(responsesParameters)).toEqual([...documented("CreateResponse"), ...newer].sort());
    expect(ours(completionParameters)).toEqual(documented("CreateCompletionRequest"));
  });
});

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** One schema of the specification, which is too long to parse whole for two of them. */
function schemaNamed(name: string, text: string): Schema {
  const lines = text.slice(text.indexOf(`\n    ${name}:\n`) + 1).split("\n");
  const length = lines.findIndex((line, index) => index > 0 && /^ {0,4}\S/.test(line));
  const parsed: Readonly<Record<string, Schema>> = parse(lines.slice(0, length).join("\n"));
  const schema = parsed[name];
  if (!schema) throw new Error(`The specification has no schema ${name}.`);
  return schema;
}

function propertiesOf(name: string, text: string): Set<string> {
  const names = new Set<string>();
  const visit = ({ $ref, allOf = [], properties = {} }: Schema): void => {
    if ($ref !== undefined) visit(schemaNamed($ref.replace("#/components/schemas/", ""), text));
    for (const part of allOf) visit(part);
    for (const property of Object.keys(properties)) names.add(property);
  };
  visit(schemaNamed(name, text));
  return names;
}

const extensions: ReadonlySet<string> = new Set(extensionParameters.map(({ name }) => name));

function page(): string {
  return `# Request parameters

How Truewire handles the parameters of OpenAI's, Anthropic's and Google's APIs, and those that other servers have added.
This page is generated from the tables that read requests; \`src/wire/apis/parameters-page.test.ts\` fails when it is out of date.

- **honoured**: the parameter has its documented effect.
- **accepted**: the parameter is validated and has no effect, which is harmless.
- **refused**: the parameter is not supported, and ignoring it would give a different answer. The answer is a 400 that names the
  parameter, with code \`unsupported_parameter\` or \`unsupported_value\`. Upstreams that speak the same API get the parameter
  unchanged.

A parameter that is \`null\` counts as absent; profile \`exact\` refuses a null in Messages, as Anthropic does. In profile \`lean\`, members
that are in no table have no effect, and upstreams get them unchanged.

## What profile exact refuses

Profile \`exact\` refuses a request as OpenAI and Anthropic do, in their words and in the order of their checks: values of another type or
out of range, names and schemas that they do not take, and the mistakes below. An upstream of the same API gets a request
unchanged, and judges most of it itself. Profile \`lean\` serves these requests, and the header \`x-truewire-warning\` says what the vendor
would answer. Of the extensions below, \`exact\` takes only those that are Truewire's own: ${own}.

Some mistakes depend on the vendor's model. They are refused for a model whose entry in the configuration names one:
\`standsFor: gpt-6-luna\`.

${refusals()}

## POST /v1/chat/completions

${table(chatParameters.filter(({ origin }) => origin === "openai"))}

## POST /v1/completions

${table(completionParameters.filter(({ origin }) => origin === "openai"))}

## POST /v1/responses

${table(responsesParameters.filter(({ origin }) => origin === "openai"))}

Responses support these of the extensions below: ${responsesParameters
    .filter(({ origin, name }) => origin === "extension" && extensions.has(name))
    .map(({ name }) => `\`${name}\``)
    .join(", ")}; and these parameters of chat:
${responsesParameters
  .filter(({ origin, name }) => origin === "extension" && !extensions.has(name))
  .map(({ name }) => `\`${name}\``)
  .join(", ")}, which profile \`exact\` refuses, as OpenAI does.

## POST /v1/messages

Anthropic's parameters. Profile \`exact\` also refuses a request without the header \`anthropic-version\` or with an unknown version. In profile
\`lean\`, blocks of an unknown type are left out. \`POST /v1/messages/count_tokens\` accepts the
same parameters, without \`max_tokens\`.

${table(messageParameters)}

## POST /v1beta/models/{model}:generateContent

Google's parameters, also of \`:streamGenerateContent\`. Names in snake case (\`generation_config\`) are read, too. [gemini.md](gemini.md) has the
other paths of this API.

${schemaTable(geminiRequest)}

The members of \`generationConfig\`:

${schemaTable(geminiGenerationConfig)}

## POST /v1/audio/transcriptions

The members of a form. \`POST /v1/audio/translations\` has the first five. Members that are in no table are ignored with a warning; profile
\`exact\` refuses them.

${schemaTable(transcriptionRequest)}

## POST /v1/rerank

The parameters of Cohere's and Jina's APIs, vLLM and llama.cpp's server.

${schemaTable(rerankRequest)}

## POST /tokenize

The parameters of llama.cpp's server:

${schemaTable(llamaTokenize)}

Those of vLLM, which also accepts \`messages\` and the other parameters of chat instead of \`prompt\`:

${schemaTable(vllmTokenize)}

## POST /detokenize

${schemaTable(detokenizeRequest)}

## Extensions

Parameters of messages and templates are for chat only; all others are for chat and completions.

${table(chatParameters.filter(({ origin, treatment }) => origin === "extension" && treatment === "honoured"))}

## Samplers that are not supported

${table(chatParameters.filter(({ origin, treatment }) => origin === "extension" && treatment === "refused"))}
`;
}

const own = extensionParameters.flatMap(({ name, isOwn }) => (isOwn ? [`\`${name}\``] : [])).join(", ");

/** Returns a table of the mistakes of each API, with the vendor's words. */
function refusals(): string {
  const apis = { chat: "chat", completions: "completions", responses: "Responses", messages: "Messages" };
  const rows = refusalCases.map(({ api, mistake, message, standsFor }) => {
    const model = standsFor === undefined ? "" : ` (\`${standsFor}\`)`;
    return `| ${apis[api]} | ${mistake}${model} | ${message.replaceAll("|", "\\|")} |`;
  });
  return ["| API | mistake | for example |", "|---|---|---|", ...rows].join("\n");
}

/** Returns the table of a request from its schema. Members are honoured, unless their `.meta()` says another treatment. */
function schemaTable(schema: z.ZodObject): string {
  return table(
    membersOf(schema).map(({ name, schema: member, always }) => {
      const { note = "", treatment = "honoured" } = member.meta() ?? {};
      return {
        name,
        treatment: treatment as RequestParameter["treatment"],
        required: always,
        note: typeof note === "string" ? note : "",
      };
    }),
  );
}

/** What the page shows of parameters. */
type Table = readonly Pick<RequestParameter, "name" | "treatment" | "required" | "note">[];
type OwnedTable = readonly Pick<RequestParameter, "name" | "origin">[];
type NamedTable = readonly Pick<RequestParameter, "name">[];

function table(parameters: Table): string {
  const rows = parameters.map(({ name, treatment, required, note }) => {
    const mark = required ? " (required)" : "";
    return `| \`${name}\`${mark} | ${treatment} | ${note.replaceAll("|", "\\|")} |`;
  });
  return ["| parameter | | |", "|---|---|---|", ...rows].join("\n");
}
