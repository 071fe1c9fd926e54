import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../core/events.ts";
import { exact } from "../profile.ts";
import { ResponseReader } from "./read.ts";
import { readResponsesRequest } from "./request.ts";
import { ResponseObject } from "./response-object.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

const folder = new URL("../../../../../shared/recordings/", import.meta.url);
const isHere = existsSync(folder);
if (!isHere) console.log("skipped: no ../shared/recordings of the Responses API to read");
if (!isHere) console.log("responses/recordings.test.ts: ../shared/recordings is not here; its tests are skipped");

interface Recording {
  readonly name: string;
  readonly date: string;
  readonly fidelity: string;
  readonly request: unknown;
  readonly body: string;
}

function recordings(name: string): Recording[] {
  const lines = readFileSync(new URL(name, folder), "utf8").split("\n").filter(Boolean);
  return lines.map((line): Recording => JSON.parse(line)).filter(({ fidelity }) => fidelity.startsWith("raw"));
}

describe.skipIf(!isHere)("recordings of OpenAI", () => {
  test("streams that are read and written again are the same response, except what depends on OpenAI's models and clock", () => {
    const all = recordings("responses-stream.jsonl").filter(
      ({ date, request, body }) => date >= "2026-07-10" && mayBeRead(request, body),
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
