import { expect, test } from "vitest";
import { judge } from "../../src/judge/check/rules/judge.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { exact } from "../../src/wire/apis/profile.ts";
import { writtenBody } from "./legal/body.ts";
import { writtenStream } from "./legal/stream.ts";
import { seeded } from "./random.ts";

// OpenAI's tier of 2026-09 was three errors: spec/chunk, spec/body and stream/service-tier.
test("an answer of the tier 'fast' is legal, streamed and whole", () => {
  const events: GenerationEvent[] = [
    { type: "start", choice: 0, source: { serviceTier: "fast" } },
    { type: "text-delta", choice: 0, text: "Hello" },
    { type: "finish", choice: 0, reason: "stop" },
    { type: "usage", usage: { promptTokens: 1, completionTokens: 1 } },
    { type: "end", end: { kind: "done" } },
  ];
  const body = { model: "m", messages: [{ role: "user", content: "Hi" }] };
  const exchanges = [
    writtenStream({ ...body, stream: true }, events, exact, seeded(1)),
    writtenBody(body, events, exact, seeded(1)),
  ];
  for (const exchange of exchanges) {
    expect(exchange.response.body).toMatch(/"service_tier": ?"fast"/);
    expect(judge(exchange, "exact").findings).toEqual([]);
  }
});
