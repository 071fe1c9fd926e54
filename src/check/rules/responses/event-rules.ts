import { atFrame, atLine, atMember, shown } from "../place.ts";
import type { StreamRule } from "../rule.ts";
import { responseEvents as schemas } from "../../../apis/responses/schema.ts";
import { specOffence } from "../spec/validate.ts";
import { endTypes, fromStart, storyOf } from "./stream-story.ts";

const endpoints = ["responses", "response-socket"] as const;
const unreadable = "the stream cannot be read";

/** What every event has. Source: specification, `ResponseStreamEvent`; 227 recorded streams of 2026. */
export const eventRules: readonly StreamRule[] = [
  {
    id: "responses/event-type",
    severity: "error",
    concern: unreadable,
    says: "Every event has a type, a string that is not empty.",
    source: "specification: ResponseStreamEvent",
    breaks: ["official SDKs", "Codex", "AI SDK", "LangChain"],
    judges: "stream",
    endpoints,
    *judge(view) {
      for (const { frame, value } of view.chunks)
        if (typeof value.type !== "string" || value.type === "") yield atFrame(frame, `type is ${shown(value.type)}`);
    },
  },
  {
    id: "responses/event-name",
    severity: "warning",
    concern: unreadable,
    says: "Every event has an `event:` line, which is its type.",
    source: "recordings 227 of 227; Open Responses specification; LiteLLM #22102",
    breaks: ["EventSource-based clients (they listen for names)", "the compliance suite of Open Responses"],
    judges: "stream",
    // A message of a WebSocket has no lines.
    endpoints: ["responses"],
    *judge(view) {
      for (const { frame, value } of view.chunks) {
        const name = frame.lines.find(({ field }) => field === "event");
        if (!name) yield atFrame(frame, `no event: line, type is ${shown(value.type)}`);
        else if (name.value !== value.type) yield atLine(name, `named ${name.value}, type is ${shown(value.type)}`);
      }
    },
  },
  {
    id: "responses/event-known",
    severity: "warning",
    concern: "text is lost or wrong",
    says: "Text, thoughts and calls come in events that the specification names.",
    source:
      "specification: ResponseStreamEvent; pi #4193 (clients drop what they do not know); source code of AI SDK, LangChain and Codex CLI",
    breaks: ["AI SDK, LangChain, Codex (they pass over events that they do not know)"],
    judges: "stream",
    endpoints,
    *judge(view) {
      for (const { chunk, type } of storyOf(view).events) {
        const isKnown = schemas.has(type) || hosted.test(type) || endTypes.has(type) || type === "keepalive";
        if (!isKnown && type !== "undefined") yield atMember(chunk, "type", `an event of type ${shown(type)}`);
      }
    },
  },
  {
    id: "responses/sequence-number",
    severity: "error",
    concern: unreadable,
    says: "Every event has a sequence_number, an integer.",
    source:
      "specification (required in every event); LiteLLM #28899, llama.cpp #24957; source code of AI SDK: its schema of a failed response",
    breaks: ["typed clients (Go, Rust, Java, C#)", "AI SDK (a failed response without one is not read)"],
    judges: "stream",
    endpoints,
    *judge(view) {
      for (const { frame, value } of view.chunks)
        if (!Number.isInteger(value.sequence_number))
          yield "sequence_number" in value
            ? atFrame(frame, `sequence_number is ${shown(value.sequence_number)}`)
            : atFrame(frame, "no sequence_number");
    },
  },
  {
    id: "responses/sequence",
    severity: "warning",
    concern: unreadable,
    says: "sequence_number counts all events: 0, 1, 2 …",
    source: "recordings 362 of 363 (the other skips one before an error); LiteLLM #28899, llama.cpp #24957",
    breaks: ["clients that continue a stream with starting_after", "clients that put events in order by it"],
    judges: "stream",
    endpoints,
    *judge(view) {
      // A stream that is continued begins behind the event that the request names.
      let due: number | undefined = fromStart(view) ? 0 : undefined;
      for (const { chunk, type, value } of storyOf(view).events) {
        const number = value.sequence_number;
        if (typeof number !== "number") continue;
        const isSkipped = type === "error" && number === (due ?? 0) + 1;
        if (due !== undefined && number !== due && !isSkipped)
          yield atMember(chunk, "sequence_number", `${number} instead of ${due}`);
        due = number + 1;
      }
    },
  },
  {
    id: "responses/obfuscation",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "obfuscation is [0-9A-Za-z], as many as bring a delta to a multiple of 16 characters; with include_obfuscation: false there is none.",
    source: "specification: stream_options.include_obfuscation; recordings 9,709 of 9,713 deltas",
    breaks: [],
    judges: "stream",
    endpoints,
    shown: (view) => view.chunks.some(({ value }) => "obfuscation" in value),
    *judge(view) {
      const options = view.exchange.request.body?.stream_options as
        | { include_obfuscation?: unknown }
        | null
        | undefined;
      for (const chunk of view.chunks) {
        const { obfuscation, delta } = chunk.value;
        if (obfuscation === undefined) continue;
        if (options?.include_obfuscation === false) yield atMember(chunk, "obfuscation", "obfuscation");
        else if (typeof obfuscation !== "string" || !/^[0-9A-Za-z]{0,15}$/.test(obfuscation))
          yield atMember(chunk, "obfuscation", `obfuscation is ${shown(obfuscation)}`);
        else if (typeof delta === "string" && ![delta.length, [...delta].length].some(fits(obfuscation)))
          yield atMember(chunk, "obfuscation", `${obfuscation.length} characters beside ${[...delta].length}`);
      }
    },
  },
  {
    id: "spec/event",
    severity: "error",
    concern: unreadable,
    says: "Every event of a response matches the schema of the specification.",
    source: "OpenAI's OpenAPI document: ResponseStreamEvent; llama.cpp #20607, lemonade #3607, LM Studio #1089",
    breaks: [
      "clients that validate events against the specification",
      "AI SDK (schema)",
      "typed clients (Go, Rust, Java, C#)",
    ],
    judges: "stream",
    endpoints,
    *judge(view) {
      for (const { chunk, type, value } of storyOf(view).events) {
        const schema = schemas.get(type);
        const offence = schema && specOffence(schema, value);
        if (offence) yield atMember(chunk, offence.member, `${type}: ${offence.path} ${offence.found}`);
      }
    },
  },
];

/** Events of tools that OpenAI runs, and of audio. */
const hosted =
  /^response\.(?:(?:web_search|file_search|code_interpreter|image_generation|mcp|computer|local_shell|shell|apply_patch)_(?:call|list_tools)|audio|tool_search|compaction|program)/;

function fits(obfuscation: string): (length: number) => boolean {
  return (length) => (length + obfuscation.length) % 16 === 0;
}
