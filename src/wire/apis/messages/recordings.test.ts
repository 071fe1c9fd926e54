import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import { isObject } from "../../core/json.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { exact } from "../profile.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { MessageReader } from "./read.ts";
import { writeMessageResponse } from "./write.ts";
import { MessageStreamWriter } from "./write-stream.ts";

describe.skipIf(!hasRecordings("of Anthropic's API to read"))("recordings of Anthropic's API", () => {
  // Over the waist and out again: what a client of ours gets from an upstream of Anthropic's.
  test("a message read and written live says the same", () => {
    for (const { name, body, model } of readRecordings("messages")) {
      const reader = newReader();
      const generation = accumulate(readResponseBody(body, reader));
      const written: unknown = JSON.parse(writeMessageResponse(generation, contextOf(model ?? "")));
      expect(today(written), name).toEqual(today(JSON.parse(body)));
    }
  });

  test("a stream read and written live says the same, event by event", () => {
    for (const { name, body, model } of readRecordings("messages-stream")) {
      const reader = newReader();
      const events: GenerationEvent[] = [...reader.push(body), ...reader.end()];
      const again = newReader();
      const written = new MessageStreamWriter(contextOf(model ?? "")).write(events);
      const reread = [...again.push(written), ...again.end()];
      expect(accumulate(reread).choices, name).toEqual(
        withSignatures(accumulate(reread).choices, accumulate(events).choices),
      );
      expect(accumulate(reread).usage, name).toMatchObject(accumulate(events).usage ?? {});
    }
  });
});

function newReader(): MessageReader {
  return new MessageReader({ newCallId: () => "toolu_new" });
}

function contextOf(model: string) {
  return {
    profile: exact,
    created: 0,
    model,
    settings: {},
    random: Math.random,
    id: "msg_01",
    options: { requestId: "req_1", reasoning: "shown" },
  } as const;
}

/** A message as today's writer shows it, where a recording is older. */
function today(value: unknown): unknown {
  if (!isObject(value)) return value;
  const usage = isObject(value["usage"]) ? value["usage"] : {};
  const content = Array.isArray(value["content"]) ? value["content"].filter(isObject) : [];
  // One recorded body ends in an empty text, which a writer of ours leaves out.
  const shown = content.filter(({ text }) => text !== "");
  return {
    ...value,
    model: null,
    container: value["container"] ?? null,
    diagnostics: value["diagnostics"] ?? null,
    stop_details: value["stop_details"] ?? null,
    content: shown.map((block) => (block["type"] === "tool_use" ? { caller: { type: "direct" }, ...block } : block)),
    usage: {
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      service_tier: "standard",
      inference_geo: "not_available",
      ...usage,
      cache_creation: usage["cache_creation"] ?? {
        ephemeral_5m_input_tokens: usage["cache_creation_input_tokens"] ?? 0,
        ephemeral_1h_input_tokens: 0,
      },
    },
  };
}

type Choices = ReturnType<typeof accumulate>["choices"];

/** One recorded thinking block has no signature; the writer adds one. */
function withSignatures(ours: Choices, theirs: Choices): Choices {
  const [choice] = theirs;
  if (!choice) return theirs;
  const parts = choice.parts.map((part, at) => {
    const own = ours[0]?.parts[at];
    return part.type === "reasoning" && part.state === undefined && own?.type === "reasoning" && own.state
      ? { ...part, state: own.state }
      : part;
  });
  return [{ ...choice, parts }];
}
