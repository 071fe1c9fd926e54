import { expect, test } from "vitest";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { ruleNamed } from "../../src/judge/check/rules/every-rule.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { exact, lean } from "../../src/wire/apis/profile.ts";
import { bodyOf, streamOf } from "./legal/responses.ts";
import { streamedResponseRequest } from "./legal/response-requests.ts";
import { seeded } from "./random.ts";

// Our writer wrote zeros where nobody had counted, which our own rule reported, and by which Codex never compacts. A program need not count.
test.each([lean, exact])("tokens that nobody counted are estimated in profile $name, streamed and whole", (profile) => {
  const events: GenerationEvent[] = [
    { type: "start", choice: 0 },
    { type: "text-delta", choice: 0, text: "Hello" },
    { type: "finish", choice: 0, reason: "stop" },
    { type: "end", end: { kind: "done" } },
  ];
  const body = { model: "m", input: "Hi" };
  const random = seeded(1);
  const exchanges = [
    streamOf(streamedResponseRequest(body, random), events, profile, random),
    bodyOf(body, events, profile, random),
  ];
  for (const exchange of exchanges) {
    const broken = judge(exchange, profile.name).findings.map(({ rule }) => [rule, ruleNamed(rule).severity]);
    expect(broken).toEqual([]);
    expect(exchange.response.body).toMatch(/"input_tokens":\s*[1-9]/);
    expect(exchange.response.body).toMatch(/"output_tokens":\s*2,/);
  }
});
