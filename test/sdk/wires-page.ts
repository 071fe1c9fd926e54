import type * as z from "zod";
import * as rerank from "../../src/wire/apis/rerank/schema.ts";
import * as tokens from "../../src/wire/apis/tokens/schema.ts";
import { readRecordings } from "../support/recordings.ts";
import { descriptionsOf, sdks } from "./compare.ts";
import { gaps } from "./gaps.ts";
import { shapeOfSchema } from "./shape.ts";
import type { Shape } from "./shape.ts";

/** What docs/wires.md shows and the source code does not say. `npm run wires` updates it. */
export interface WiresData {
  /** Name of an SDK → its compared versions → the day of their release. */
  readonly sdks: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly recordings: Readonly<Record<string, RecordingCount>>;
}

export interface RecordingCount {
  readonly count: number;
  /** Those whose bytes were kept: others are parsed and written again. */
  readonly raw: number;
  /** The month of the newest one; `null` if no recording has a date. */
  readonly newest: string | null;
}

/** API → the kinds of its recordings, and their files without ending. */
const recordingsOf: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  chat: { streams: "chat-stream", bodies: "chat" },
  completions: { streams: "completions-stream", bodies: "completions" },
  responses: {
    streams: "responses-stream",
    bodies: "responses",
    errors: "responses-errors",
    "other paths": "responses-other",
    "of other servers": "responses-foreign",
  },
  messages: {
    streams: "messages-stream",
    bodies: "messages",
    errors: "messages-errors",
    "other paths": "messages-other",
  },
  embeddings: { bodies: "embeddings" },
  models: { bodies: "models" },
  "errors of OpenAI": { bodies: "errors" },
};

/** Counts the recordings that are next to the project. */
export function countRecordings(): WiresData["recordings"] {
  const files = Object.values(recordingsOf).flatMap((kinds) => Object.values(kinds));
  const counted = files.map((file) => {
    const all = readRecordings(file);
    const newest = all
      .map(({ date }) => date ?? "")
      .sort()
      .at(-1);
    const raw = all.filter(({ fidelity }) => fidelity.startsWith("raw")).length;
    return [file, { count: all.length, raw, newest: newest ? newest.slice(0, 7) : null }] as const;
  });
  return Object.fromEntries(counted);
}

/** Returns docs/wires.md. */
export function wiresPage(data: WiresData): string {
  const names = Object.keys(sdks);
  return `# What Truewire knows of each wire

This page is generated from the schemas in \`src/wire/apis/\`, from the list of what they lack (\`test/sdk/gaps.ts\`), and from
\`test/sdk/wires.json\`. \`npm run wires\` updates the numbers and this page.

## As of when

The schemas are compared with the types of these versions of the vendors' SDKs. A test fails if a type has a member, a value or a kind of
object that is neither described nor listed below. \`npm run drift\` compares with the newest versions in the registry.

| SDK | version | released |
| --- | --- | --- |
${names.flatMap((sdk) => Object.entries(data.sdks[sdk] ?? {}).map((row) => `| \`${sdk}\` | ${row.join(" | ")} |`)).join("\n")}

## What is described

Members are counted once for each object that has them. "Not described" counts the lines of the last section.

| object | type of the SDK | members | not described |
| --- | --- | --- | --- |
${names.flatMap((sdk) => descriptionsOf(sdk).map(({ name, type, schema }) => objectRow(name, `\`${type.split(":")[1]}\``, schema))).join("\n")}
${Object.entries(ours)
  .map(([name, schema]) => objectRow(name, "–", schema))
  .join("\n")}

## From how many recordings

Answers of the vendors' own servers, recorded by other projects and by us. They are not part of the repository. "Raw" counts those whose bytes
were kept; of the others, a recorder kept the parsed values. Rerank and tokens follow the documents of Cohere, Jina, llama.cpp and vLLM.

| API | kind | recordings | raw | newest |
| --- | --- | --- | --- | --- |
${Object.entries(recordingsOf)
  .flatMap(([api, kinds]) =>
    Object.entries(kinds).map(([kind, file]) => recordingRow(api, kind, data.recordings[file])),
  )
  .join("\n")}

## What is not described

${Object.keys(gaps).map(gapsOf).join("\n\n")}
`;
}

/** Objects of APIs for which there is no SDK of OpenAI or Anthropic. */
const ours: Readonly<Record<string, z.ZodType>> = {
  "rerank: request": rerank.rerankRequest,
  "rerank: answer": rerank.ranking,
  "tokens: request of llama.cpp": tokens.llamaTokenize,
  "tokens: request of vLLM": tokens.vllmTokenize,
  "tokens: answer of llama.cpp": tokens.llamaTokens,
  "tokens: answer of vLLM": tokens.vllmTokens,
};

function objectRow(name: string, type: string, schema: z.ZodType): string {
  const lacking = Object.keys(gaps[name] ?? {}).length;
  return `| ${name} | ${type} | ${membersIn(shapeOfSchema(schema))} | ${lacking} |`;
}

function membersIn(shape: Shape, seen = new Set<Shape>()): number {
  if (seen.has(shape)) return 0;
  seen.add(shape);
  const inObjects = shape.objects.map((members) =>
    [...members.values()].reduce((sum, member) => sum + membersIn(member, seen), members.size),
  );
  const inElements = shape.elements.map((element) => membersIn(element, seen));
  return [...inObjects, ...inElements].reduce((sum, count) => sum + count, 0);
}

function recordingRow(api: string, kind: string, { count, raw, newest }: RecordingCount = nothing): string {
  return `| ${api} | ${kind} | ${count} | ${raw} | ${newest ?? "–"} |`;
}

const nothing: RecordingCount = { count: 0, raw: 0, newest: null };

function gapsOf(name: string): string {
  const byReason = new Map<string, string[]>();
  for (const [path, reason] of Object.entries(gaps[name] ?? {}))
    byReason.set(reason, [...(byReason.get(reason) ?? []), path]);
  const lists = Array.from(
    byReason,
    ([reason, paths]) => `- ${reason}: ${paths.map((path) => `\`${path}\``).join(", ")}`,
  );
  return `### ${name}\n\n${lists.join("\n")}`;
}
