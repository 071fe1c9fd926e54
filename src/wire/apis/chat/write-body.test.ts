import { expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { ChoicesContext, RequestedAnswer } from "../choices-answer.ts";
import { exact, lean } from "../profile.ts";
import type { Profile } from "../profile.ts";
import { writeChatResponse } from "./write-body.ts";

function written(events: readonly GenerationEvent[], profile: Profile, asked: Partial<RequestedAnswer> = {}): string {
  const plain = { stream: false, includeUsage: false, logprobs: false, includeTimings: false };
  const context: ChoicesContext = {
    profile,
    requested: { ...plain, namedToolChoice: false, legacyFunctions: false, ...asked },
    id: "chatcmpl-Test",
    created: 1_800_000_000,
    model: "tiny",
    settings: {},
    random: () => 0,
  };
  return writeChatResponse(accumulate([...events, { type: "end", end: { kind: "done" } }]), context);
}

const said: readonly GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "reasoning-delta", choice: 0, text: "hm" },
  {
    type: "text-delta",
    choice: 0,
    text: "Hé",
    logprobs: [{ token: "Hé", logprob: -1e-6, bytes: [72, 195, 169], top: [] }],
  },
  { type: "finish", choice: 0, reason: "stop", stop: "END" },
  { type: "usage", usage: { promptTokens: 3, completionTokens: 1 } },
];
const called: readonly GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: "{}" },
  { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
  { type: "finish", choice: 0, reason: "tool-calls" },
];

test("profile lean, to the byte", () => {
  expect(written(said, lean)).toBe(
    '{"id":"chatcmpl-Test","object":"chat.completion","created":1800000000,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"Hé","reasoning_content":"hm"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4},"system_fingerprint":null}',
  );
});

// smolagents 1.26 reads the counts of a whole answer without asking whether it has them, as OpenAI's always has.
test("what the source has not counted is estimated", () => {
  const answered = JSON.parse(written(called, lean, { estimatePrompt: () => 7 })) as { readonly usage?: object };
  expect(answered.usage).toEqual({ prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 });
});

test("profile exact, to the byte", () => {
  expect(written(said, exact, { logprobs: true })).toBe(`{
  "id": "chatcmpl-Test",
  "object": "chat.completion",
  "created": 1800000000,
  "model": "tiny",
  "choices": [
    {
      "index": 0,
      "message": {
        "role": "assistant",
        "content": "Hé",
        "refusal": null,
        "annotations": []
      },
      "logprobs": {
        "content": [
          {
            "token": "Hé",
            "logprob": -1e-6,
            "bytes": [
              72,
              195,
              169
            ],
            "top_logprobs": []
          }
        ],
        "refusal": null
      },
      "finish_reason": "stop"
    }
  ],
  "usage": {
    "prompt_tokens": 3,
    "completion_tokens": 1,
    "total_tokens": 4,
    "prompt_tokens_details": {
      "cached_tokens": 0,
      "audio_tokens": 0
    },
    "completion_tokens_details": {
      "reasoning_tokens": 0,
      "audio_tokens": 0,
      "accepted_prediction_tokens": 0,
      "rejected_prediction_tokens": 0
    }
  },
  "service_tier": "default",
  "system_fingerprint": null
}
`);
});

interface Body {
  readonly choices: readonly { readonly message: object; readonly finish_reason: string; readonly stop_str?: string }[];
}

function firstChoice(body: string): Body["choices"][number] | undefined {
  const parsed: Body = JSON.parse(body);
  return parsed.choices[0];
}

test("content is null in a message of calls, and members are in OpenAI's order", () => {
  const calls = [{ id: "call_0", type: "function", function: { name: "f", arguments: "{}" } }];
  const choice = firstChoice(written(called, exact));
  expect(JSON.stringify(choice?.message)).toBe(
    JSON.stringify({ role: "assistant", content: null, tool_calls: calls, refusal: null, annotations: [] }),
  );
  expect(firstChoice(written(called, lean))?.message).toEqual({ role: "assistant", content: null, tool_calls: calls });
});

test("a call that is forced by name ends with stop only in profile exact", () => {
  const named = { namedToolChoice: true };
  expect(firstChoice(written(called, exact, named))?.finish_reason).toBe("stop");
  expect(firstChoice(written(called, lean, named))?.finish_reason).toBe("tool_calls");
});

test("length wins over calls", () => {
  const cut = called.map((event) => (event.type === "finish" ? { ...event, reason: "length" as const } : event));
  for (const profile of [lean, exact]) expect(firstChoice(written(cut, profile))?.finish_reason).toBe("length");
});

test("a request with legacy functions gets function_call", () => {
  expect(firstChoice(written(called, lean, { legacyFunctions: true }))).toMatchObject({
    message: { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
    finish_reason: "function_call",
  });
});

test("the stop string is in the answer only on request", () => {
  expect(firstChoice(written(said, lean, { includeStopString: true }))?.stop_str).toBe("END");
  expect(firstChoice(written(said, lean))).not.toHaveProperty("stop_str");
});

test("an impossible token has a finite logprob", () => {
  const impossible = { token: "x", logprob: -Infinity, bytes: null, top: [] };
  const events: readonly GenerationEvent[] = [{ type: "text-delta", choice: 0, text: "x", logprobs: [impossible] }];
  expect(written(events, lean, { logprobs: true })).toContain('"logprob":-9999,');
  expect(written(events, exact, { logprobs: true })).toContain('"logprob": -9999.0,');
});
