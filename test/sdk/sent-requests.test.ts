import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { knownServer } from "../../src/wire/apis/adapt/known-servers.ts";
import { sourcePorts } from "../../src/wire/apis/ports.ts";
import type { SourceApi } from "../../src/wire/apis/source-port.ts";
import type { Message } from "../../src/wire/core/message.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { times } from "../support/runs.ts";

/*
 * What is sent to the vendors' own servers, for hundreds of requests of any API, judged by the vendors: by the types of their SDKs, and by OpenAI's
 * specification where it is present.
 */

const count = times(300);
const word = fc.stringMatching(/^[a-z]{1,8}$/);
const text = fc.string({ minLength: 1, maxLength: 12 });
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const id = fc.stringMatching(/^call_[a-z0-9]{8}$/);

const schema = fc.record({
  type: fc.constant("object"),
  properties: fc.dictionary(word, fc.constantFrom({ type: "string" }, { type: "integer", minimum: 1 }), { maxKeys: 3 }),
  required: fc.constant([]),
  additionalProperties: fc.constant(false),
});
const textPart = fc.record({ type: fc.constant("text"), text });
const imagePart = fc.record({
  type: fc.constant("image"),
  url: fc.constantFrom("https://example.com/a.png", "data:image/png;base64,iVBORw0KGgo="),
  detail: optional(fc.constantFrom("low", "high", "auto")),
});
const filePart = fc.record({
  type: fc.constant("file"),
  name: fc.constant("a.pdf"),
  data: fc.constant("data:application/pdf;base64,JVBERi0="),
});
const parts = (...kinds: readonly fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> =>
  fc.oneof(text, fc.array(fc.oneof(...kinds), { minLength: 1, maxLength: 3 }));
const turn = fc
  .tuple(
    fc.record({ role: fc.constant("user"), content: parts(textPart, imagePart, filePart) }),
    fc.array(textPart, { maxLength: 2 }),
    fc.uniqueArray(id, { maxLength: 2 }),
    fc.record({ input: word, result: parts(textPart, imagePart), isError: optional(fc.boolean()) }),
    fc.boolean(),
  )
  .map(([user, said, calls, { input, result, isError }, isReasoned]) => [
    user,
    {
      role: "assistant",
      content: [
        ...(isReasoned ? [{ type: "reasoning", text: "Hm." }] : []),
        ...(calls.length + said.length > 0 ? said : [{ type: "text", text: "Yes." }]),
        ...calls.map((call) => ({ type: "tool-call", id: call, name: "f0", arguments: JSON.stringify({ input }) })),
      ],
    },
    ...calls.map((call) => ({ role: "tool", content: result, toolCallId: call, ...(isError && { isError }) })),
  ]);
const conversation = fc
  .tuple(optional(fc.constantFrom("system", "developer")), fc.array(turn, { maxLength: 2 }), text)
  .map(([role, turns, last]) => [
    ...(role === undefined ? [] : [{ role, content: "You are terse." }]),
    ...turns.flat(),
    { role: "user", content: last },
  ]) as fc.Arbitrary<readonly Message[]>;

const unit = fc.double({ min: 0, max: 1, noNaN: true });
const request: fc.Arbitrary<GenerationRequest> = fc
  .record({
    messages: conversation,
    tools: optional(
      fc.array(fc.record({ description: optional(text), parameters: schema, strict: optional(fc.boolean()) }), {
        minLength: 1,
        maxLength: 3,
      }),
    ),
    choice: optional(fc.constantFrom("auto", "none", "required", "named")),
    output: optional(schema),
    temperature: optional(unit),
    topP: optional(unit),
    topK: optional(fc.integer({ min: 1, max: 100 })),
    stop: optional(fc.array(word, { minLength: 1, maxLength: 4 })),
    maxTokens: optional(fc.integer({ min: 2048, max: 9000 })),
    effort: optional(fc.constantFrom("none", "low", "medium", "high")),
    parallelToolCalls: optional(fc.boolean()),
    n: fc.constantFrom(1, 1, 1, 2),
    stream: fc.boolean(),
    wantsUsage: fc.boolean(),
  })
  .map(({ messages, tools, choice, output, temperature, topP, topK, stop, maxTokens, effort, n, ...others }) => {
    const declared = tools?.map((tool, at) => defined({ ...tool, name: `f${at}` }));
    const toolChoice = choice === "named" ? { type: choice, name: "f0" } : choice && { type: choice };
    return {
      id: "r",
      model: "m",
      prompt: { kind: "chat", messages, template: {} },
      n,
      sampling: defined({ temperature, topP, topK }),
      limits: defined({ stop, maxTokens }),
      ...(declared && { tools: declared, ...(toolChoice && { toolChoice }) }),
      ...(declared && others.parallelToolCalls !== undefined && { parallelToolCalls: others.parallelToolCalls }),
      ...(output && { output: { type: "json-schema", name: "answer", schema: output, strict: true, path: "" } }),
      ...(effort !== undefined && { reasoning: { effort } }),
      stream: others.stream,
      wantsUsage: others.wantsUsage,
      extra: {},
    } as unknown as GenerationRequest;
  });

/**
 * OpenAI's document as ajv reads it. `nullable` has no meaning in version 3.1, and ajv refuses it without a type. `oneOf` becomes `anyOf`:
 * a user's message of Responses fits two of the three forms that its `oneOf` lists.
 */
function forAjv(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(forAjv);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([name, inner]) => name !== "nullable" || typeof inner === "object");
  return Object.fromEntries(members.map(([name, inner]) => [name === "oneOf" ? "anyOf" : name, forAjv(inner)]));
}

function defined(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** How requests to each vendor are written, and the type of its SDK that judges them. */
const vendors: readonly {
  readonly api: SourceApi;
  readonly url: string;
  readonly type: string;
  readonly path?: string;
}[] = [
  {
    api: "chat",
    url: "https://api.openai.com/v1",
    type: 'import("openai-7/resources/chat/completions").ChatCompletionCreateParams',
    path: "/chat/completions",
  },
  {
    api: "responses",
    url: "https://api.openai.com/v1",
    type: 'import("openai-7/resources/responses/responses").ResponseCreateParams',
    path: "/responses",
  },
  {
    api: "messages",
    url: "https://api.anthropic.com/v1",
    // The newest SDK leaves out sampling, which requests with `anthropic-version: 2023-06-01`, as Truewire sends them, may have.
    type: '{ temperature?: number; top_p?: number; top_k?: number } & import("@anthropic-ai/sdk/resources/messages").MessageCreateParams',
  },
];

function sentTo(api: SourceApi, url: string): readonly unknown[] {
  const profile = knownServer(url, undefined)?.profile ?? {};
  const requests = fc.sample(request, { numRuns: count, seed: 28 });
  return requests.map(
    (each) => JSON.parse(JSON.stringify(sourcePorts[api].writeRequest(each, profile, () => {}))) as unknown,
  );
}

const file = new URL("../../../shared/openapi/openapi-2026-08-21.yaml", import.meta.url);
if (!existsSync(file)) console.log("skipped: no ../shared/openapi to compare requests with");

let read: Ajv2020 | undefined;
/** OpenAI's specification, which takes a second to read. */
function specification(): Ajv2020 {
  if (read !== undefined) return read;
  read = new Ajv2020({ strict: false, validateSchema: false, validateFormats: false, logger: false });
  const document: unknown = parse(readFileSync(file, "utf8"), { maxAliasCount: -1 });
  return read.addSchema(forAjv(document) as object, "openapi");
}

describe.each(vendors)("$api", ({ api, url, type, path }) => {
  test("the types of the vendor's SDK accept hundreds of requests", async () => {
    const folder = mkdtempSync(join(process.cwd(), "test/sdk/.sent-"));
    try {
      const lines = sentTo(api, url).map(
        (body, at) => `export const r${at} = ${JSON.stringify(body)} satisfies Params;`,
      );
      writeFileSync(join(folder, "sent.ts"), `type Params = ${type};\n${lines.join("\n")}\n`);
      const options = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--target",
        "es2023",
        "--module",
        "nodenext",
        "--types",
        "node",
      ];
      const tsc = join(process.cwd(), "node_modules/.bin/tsc");
      const { stdout } = await promisify(execFile)(tsc, ["--ignoreConfig", ...options, join(folder, "sent.ts")], {
        maxBuffer: 1e8,
      }).catch((error: unknown) => error as { readonly stdout: string });
      const kinds = new Set(stdout.split("\n").map((line) => line.replace(/^.*?: error /, "")));
      expect([...kinds].filter(Boolean).slice(0, 20)).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  if (path === undefined) return;
  test.skipIf(!existsSync(file))("OpenAI's specification accepts hundreds of requests", () => {
    const ajv = specification();
    const place = `openapi#/paths/${path.replaceAll("/", "~1")}/post/requestBody/content/application~1json/schema`;
    const validate = ajv.compile({ $ref: place });
    for (const body of sentTo(api, url))
      expect({ body, errors: validate(body) ? [] : validate.errors?.slice(0, 3) }).toEqual({ body, errors: [] });
  });
});
