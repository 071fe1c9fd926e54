import type { Exchange } from "../../../src/judge/check/rules/exchange.ts";
import type { GenerationEvent } from "../../../src/wire/core/events.ts";
import { exact, lean } from "../../../src/wire/apis/profile.ts";
import { seeded } from "../random.ts";
import { writtenBody } from "./body.ts";
import { writtenStream } from "./stream.ts";

/** An answer of one token with this log probability. */
export function logprobExchange(logprob: number, profile: "lean" | "exact", stream: boolean): Exchange {
  const body = { model: "m", messages: [{ role: "user", content: "Hi" }], logprobs: true, ...(stream && { stream }) };
  const token = { token: "Hi", logprob, bytes: [72, 105], top: [] };
  const events: readonly GenerationEvent[] = [
    { type: "start", choice: 0 },
    { type: "text-delta", choice: 0, text: "Hi", logprobs: [token] },
    { type: "finish", choice: 0, reason: "stop" },
    { type: "usage", usage: { promptTokens: 1, completionTokens: 1 } },
    { type: "end", end: { kind: "done" } },
  ];
  const write = stream ? writtenStream : writtenBody;
  return write(body, events, profile === "lean" ? lean : exact, seeded(1));
}
