import { describe, expect, test } from "vitest";
import { judgeCapture } from "../../src/judge/check/check-capture.ts";
import { ruleNamed } from "../../src/judge/check/rules/every-rule.ts";
import type { Profile } from "../../src/wire/apis/profile.ts";
import { exact, lean } from "../../src/wire/apis/profile.ts";
import { rewrittenCapture, rewrittenParts } from "../../src/wire/apis/repair-capture.ts";
import { framesOf } from "../../src/judge/check/rules/frames.ts";
import { repairCapture } from "../../src/judge/check/repair.ts";
import { type CapturedApi, isBody } from "../../src/wire/apis/ordered-capture.ts";
import { legalMessageStream } from "../check/legal/messages.ts";
import { legalResponseStream } from "../check/legal/responses.ts";
import { legalStream } from "../check/legal/stream.ts";
import type { Legal } from "../check/legal/stream.ts";
import { seeded } from "../check/random.ts";
import { captureOf, doubles } from "./double-server.ts";
import { times } from "../support/runs.ts";

// `truewire repair | truewire check` finds nothing. Repair was compared with what we thought that an answer should be, and never with our
// own rules; no test had a Messages stream without usage.

/** The rules that a repaired capture breaks, but for those that only give a hint. */
function brokenRules(capture: string, from: CapturedApi | "auto", profile: Profile): string[] {
  const { body } = repairCapture(capture, { profile, from, random: seeded(1), now: 1_760_000_000 });
  const { findings } = judgeCapture("repaired", body);
  const rules = findings.map(({ rule }) => rule).filter((rule) => ruleNamed(rule).severity !== "note");
  return [...new Set(rules)];
}

describe("doubles of servers", () => {
  test.each(doubles.map((double) => [`${double.server}: ${double.shows}`, double] as const))("%s", (_, double) => {
    // Calls and reasoning in a text are read where a server has a format for them; a capture has none.
    const inText =
      double.options.format === undefined ? [] : ["delta/reasoning-in-content", "body/reasoning-in-content"];
    for (const profile of [lean, exact]) {
      expect(brokenRules(captureOf(double), "auto", profile).filter((rule) => !inText.includes(rule))).toEqual([]);
      if (double.body === undefined) continue;
      // Tokens that the server did not count are not invented.
      const uncounted = double.expect.usage ? [] : ["body/usage"];
      expect(brokenRules(double.body, "auto", profile).filter((rule) => !inText.includes(rule))).toEqual(uncounted);
    }
  });
});

// For every stream and every split between events.
test.each(doubles.filter((double) => !isBody(captureOf(double))).map((double) => [double.id, double] as const))(
  "%s: what is sent for the parts is the repaired stream",
  (_, double) => {
    const capture = captureOf(double);
    const frames = framesOf(capture);
    const starts = [0, ...frames.slice(1).map(({ start }) => start)];
    const options = { profile: lean, from: "chat" as const, now: 1_760_000_000 };
    const { body } = rewrittenCapture(capture, { ...options, random: seeded(1) });
    for (const step of [1, 2, frames.length]) {
      const cuts = starts.filter((_, at) => at % step === 0);
      const parts = cuts.map((start, at) => capture.slice(start, cuts[at + 1]));
      expect(rewrittenParts(parts, { ...options, random: seeded(1) }).join("")).toBe(body);
    }
  },
);

test.each([
  ["messages", legalMessageStream],
  ["responses", legalResponseStream],
] as const)("%s: what is sent for an event has its name", (from, legal) => {
  for (let seed = 1; seed <= 8; seed++) {
    const { body } = legal(seed).exchange.response;
    const parts = body.match(/[^]+?\n\n/g) ?? [];
    const options = { profile: lean, from, now: 1_760_000_000, random: seeded(1) };
    const sent = rewrittenParts(parts, options);
    expect(sent.join("")).toBe(rewrittenCapture(body, { ...options, random: seeded(1) }).body);
    const nameOf = (text: string): string => /^event: ?(.*)$/m.exec(text)?.[1] ?? "";
    // Events without content, and pings, are left out.
    for (const [at, part] of parts.entries())
      if (sent[at] !== "" && nameOf(part) !== "ping") expect(sent[at], `${seed}: ${part}`).toContain(nameOf(part));
  }
});

type Json = Record<string, unknown>;
type Damage = (event: Json, name: string) => Json | null;

/** The same stream with each event changed; null: it is not there. `withNames`: its event names stay. */
function damaged(stream: string, damage: Damage, withNames = true): string {
  const frames = stream.split("\n\n").filter(Boolean);
  const changed = frames.map((frame) => {
    const at = frame.indexOf("data: {");
    if (at === -1) return `${frame}\n\n`;
    const event = JSON.parse(frame.slice(at + "data: ".length)) as Json;
    const result = damage(event, String(event["type"]));
    return result === null ? "" : `${withNames ? frame.slice(0, at) : ""}data: ${JSON.stringify(result)}\n\n`;
  });
  return changed.join("");
}

const without =
  (...names: readonly string[]): Damage =>
  (event) =>
    JSON.parse(JSON.stringify(event, (name, value: unknown) => (names.includes(name) ? undefined : value))) as Json;

const omit =
  (...types: readonly string[]): Damage =>
  (event, type) =>
    types.includes(type) ? null : event;

const nothing: Damage = (event) => event;

/** What imitators make of a stream, by API. */
const damages: Readonly<Record<string, readonly [what: string, damage: (stream: string) => string][]>> = {
  messages: [
    ["as it is", (stream) => stream],
    ["without usage", (stream) => damaged(stream, without("usage"))],
    [
      "without usage at the end",
      (stream) => damaged(stream, (event, type) => (type === "message_delta" ? without("usage")(event, type) : event)),
    ],
    [
      "without usage at the start",
      (stream) => damaged(stream, (event, type) => (type === "message_start" ? without("usage")(event, type) : event)),
    ],
    [
      "with output_tokens alone",
      (stream) => damaged(stream, without("input_tokens", "cache_read_input_tokens", "cache_creation")),
    ],
    ["without event names", (stream) => damaged(stream, nothing, false)],
    ["without types", (stream) => damaged(stream, (event) => ({ ...event, type: undefined }))],
    ["without message_start", (stream) => damaged(stream, omit("message_start"))],
    ["without message_stop", (stream) => damaged(stream, omit("message_stop"))],
    ["without ends of blocks", (stream) => damaged(stream, omit("content_block_stop"))],
    [
      "without the message's own members",
      (stream) =>
        damaged(
          stream,
          (event, type) => (type === "message_start" ? without("id", "role", "model", "type")(event, type) : event),
          true,
        ),
    ],
    ["without indices", (stream) => damaged(stream, without("index"))],
    [
      "without signatures",
      (stream) => damaged(stream, (event) => (JSON.stringify(event).includes("signature_delta") ? null : event)),
    ],
    ["without ids", (stream) => damaged(stream, without("id"))],
    ["with a [DONE]", (stream) => `${stream}data: [DONE]\n\n`],
    ["with line ends of Windows", (stream) => stream.replaceAll("\n", "\r\n")],
  ],
  responses: [
    ["as it is", (stream) => stream],
    ["without event names", (stream) => damaged(stream, nothing, false)],
    ["without sequence numbers", (stream) => damaged(stream, without("sequence_number"))],
    ["without output_index", (stream) => damaged(stream, without("output_index"))],
    ["without item_id", (stream) => damaged(stream, without("item_id"))],
    ["without any id", (stream) => damaged(stream, without("id", "item_id"))],
    ["without content_index", (stream) => damaged(stream, without("content_index", "summary_index"))],
    ["without response.created", (stream) => damaged(stream, omit("response.created", "response.in_progress"))],
    ["without the beginnings of items", (stream) => damaged(stream, omit("response.output_item.added"))],
    [
      "without the beginnings of parts",
      (stream) => damaged(stream, omit("response.content_part.added", "response.reasoning_summary_part.added")),
    ],
    ["without the ends of items", (stream) => damaged(stream, omit("response.output_item.done"))],
    [
      "without the ends of parts",
      (stream) => damaged(stream, omit("response.content_part.done", "response.reasoning_summary_part.done")),
    ],
    [
      "without the ends of texts",
      (stream) => damaged(stream, (event, type) => (/(text|arguments|input|refusal)\.done$/.test(type) ? null : event)),
    ],
    ["without deltas", (stream) => damaged(stream, (event, type) => (type.endsWith(".delta") ? null : event))],
    ["without usage", (stream) => damaged(stream, without("usage"))],
    ["without statuses", (stream) => damaged(stream, without("status"))],
    [
      "with a bare response",
      (stream) =>
        damaged(stream, (event) =>
          event["response"] ? { ...event, response: bare(event["response"] as Json) } : event,
        ),
    ],
  ],
  chat: [
    ["as it is", (stream) => stream],
    ["without ids", (stream) => damaged(stream, without("id"))],
    ["without the envelope", (stream) => damaged(stream, without("id", "object", "created", "model"))],
    ["without indices of calls", (stream) => stream.replaceAll(/("tool_calls":\[\{)"index":\d+,/g, "$1")],
    ["without roles", (stream) => damaged(stream, without("role"))],
    ["without finish reasons", (stream) => damaged(stream, without("finish_reason"))],
    ["without usage", (stream) => damaged(stream, without("usage"))],
    ["without [DONE]", (stream) => stream.replaceAll("data: [DONE]\n\n", "")],
    [
      "with a role on every delta",
      (stream) =>
        damaged(
          stream,
          (event) =>
            JSON.parse(JSON.stringify(event).replaceAll('"delta":{"', '"delta":{"role":"assistant","')) as Json,
        ),
    ],
    ["with event names", (stream) => stream.replaceAll("data: ", "event: message\ndata: ")],
  ],
};

/** Rules about token counts that the source never sent. Repair writes 0 where an API has no answer without a count. */
const uncounted: ReadonlySet<string> = new Set([
  "messages/usage-counted",
  "messages/start-input",
  "responses/usage-counted",
]);

function bare({ id, object, status, output, error, incomplete_details }: Json): Json {
  return { id, object, status, output, error, incomplete_details };
}

/** How many streams of each API are damaged in each way. Seeds are the same in each run. */
const streams = times(8);

describe.each([
  ["messages", legalMessageStream],
  ["responses", legalResponseStream],
  ["chat", legalStream],
] as const)("streams of %s", (api, legal) => {
  test.each(damages[api] ?? [])("%s", (_, damage) => {
    const found = new Map<string, number>();
    for (let seed = 0; seed < streams; seed++) {
      const { exchange }: Legal = legal(seed);
      // After a call that the request names, "stop" is right: a capture does not show that.
      if (typeof exchange.request.body?.["tool_choice"] === "object") continue;
      const from = exchange.endpoint as CapturedApi;
      for (const profile of [lean, exact])
        for (const rule of brokenRules(damage(exchange.response.body), from, profile))
          if (!uncounted.has(rule)) found.set(rule, (found.get(rule) ?? 0) + 1);
    }
    expect(Object.fromEntries(found)).toEqual({});
  });
});
