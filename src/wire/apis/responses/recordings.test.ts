import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../core/events.ts";
import { exact } from "../profile.ts";
import { ResponseReader } from "./read.ts";
import { readResponsesRequest } from "./request.ts";
import { ResponseObject } from "./response-object.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

describe.skipIf(!hasRecordings("of the Responses API to read"))("recordings of OpenAI", () => {
  test("streams that are read and written again are the same response, except what depends on OpenAI's models and clock", () => {
    const all = readRecordings("responses-stream").filter(
      ({ date, fidelity, request, body }) =>
        (date ?? "") >= "2026-07-10" && fidelity.startsWith("raw") && mayBeRead(request, body),
    );
    expect(all.length).toBeGreaterThan(50);
    const different = all.flatMap(({ name, request, body }) => {
      const reader = new ResponseReader({ newCallId: () => "call_new" });
      const events = [...reader.push(body), ...reader.end()];
      const ours = comparable(written(events, request));
      const theirs = comparable(body);
      const at = theirs.findIndex((line, index) => line !== ours[index]);
      return at === -1 && reader.repairs.total === 0 ? [] : [`${name}: ${theirs[at]} | ${ours[at]}`.slice(0, 600)];
    });
    expect(different).toEqual([]);
  });
});

/** Requests that we can read, for answers that have nothing of OpenAI's own servers, and no delta that a recorder has emptied. */
function mayBeRead(request: unknown, body: string): boolean {
  if (body.includes('"delta":""')) return false;
  if (
    /"type":"(web_search|file_search|code_interpreter|image_generation|mcp|tool_search|compaction)|moderation_result/.test(
      body,
    )
  ) {
    return false;
  }
  try {
    readResponsesRequest(request, "req_1", { profile: exact });
    return true;
  } catch {
    return false;
  }
}

/** Returns the stream that the writer makes of these events for this request. */
function written(events: readonly GenerationEvent[], request: unknown): string {
  const { responseOptions } = readResponsesRequest(request, "req_1", { profile: exact });
  const { model } = request as { model: string };
  const context = { profile: exact, created: 0, now: () => 0, model, settings: {}, random: () => 0 };
  return new ResponseStreamWriter(new ResponseObject(context, responseOptions, "stream")).write(events);
}

function comparable(stream: string): string[] {
  return (
    stream
      .trimEnd()
      .replace(/"obfuscation":"(\w*)"/g, (_, hidden: string) => `"obfuscation":${hidden.length}`)
      .replace(/"completed_at":\d+/g, '"completed_at":0')
      // Answers have it since 2026-09.
      .replace(/"access_programs":null,/g, "")
      .replace(/"top_p":0\.98/g, '"top_p":1.0')
      .replace(/"prompt_cache_retention":"24h"/g, '"prompt_cache_retention":"in_memory"')
      .replace(/"reasoning":\{"context":[^}]*\}/g, '"reasoning":{}')
      // OpenAI encrypts reasoning again each time that it shows it, and already has the member when the item begins.
      .replace(/"encrypted_content":"[^"]*",/g, "")
      .split("\n")
  );
}
