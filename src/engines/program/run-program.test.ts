import { describe, expect, test } from "vitest";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { readChatRequest } from "../../wire/apis/chat/request.ts";
import { readCompletionRequest } from "../../wire/apis/completions/request.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { plainText } from "../../text/formats/format.ts";
import type { Program, ProgramInput } from "../../wire/apis/chat/program.ts";
import { defineProgram, RequestError } from "./program.ts";
import { runProgram } from "./run-program.ts";

function requestOf(body: Record<string, unknown> = {}, more: Partial<GenerationRequest> = {}): GenerationRequest {
  const chat = { model: "m", messages: [{ role: "user", content: "hi" }], stream: true, ...body };
  return { ...readChatRequest(chat, "req_1", { forwards: true }).request, ...more };
}

async function run(
  program: Program,
  request = requestOf(),
  signal = new AbortController().signal,
  showErrors = false,
): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  for await (const batch of runProgram(program, request, signal, {
    format: plainText,
    newCallId: () => "call_x",
    showErrors,
  }))
    events.push(...batch);
  return events;
}

const text = (events: GenerationEvent[]) => accumulate(events).choices.map((choice) => choice.text);

const helloSix: [string, Program][] = [
  ["a function", () => "Hello world"],
  ["an async function", async () => "Hello world"],
  ["a whole result", async () => ({ text: "Hello world" })],
  [
    "a generator",
    function* () {
      yield "Hello";
      yield " world";
    },
  ],
  [
    "an async generator",
    async function* () {
      yield "Hello";
      yield " world";
    },
  ],
  [
    "a generator's return value",
    function* () {
      yield "Hello";
      return " world";
    },
  ],
  ["an array", () => ["Hello", " world"]],
];
test.each(helloSix)("%s answers", async (_name, program) => {
  const events = await run(program);
  expect(text(events)).toEqual(["Hello world"]);
  expect(events.at(-1)).toEqual({ type: "end", end: { kind: "done" } });
});

test("only what the client set reaches the program, under OpenAI's names", async () => {
  let seen: ProgramInput | undefined;
  const body = { temperature: 0, stream: false, stream_options: null, seed: null, requirements: ["be brief"] };
  await run(
    defineProgram((input) => {
      seen = input;
      return "";
    }),
    requestOf(body),
  );
  expect(seen?.options).toEqual({ temperature: 0, requirements: ["be brief"] });
  expect(seen?.messages).toEqual([{ role: "user", content: "hi" }]);
  expect(seen).not.toHaveProperty("tools");
});

test("a program that says context_length_exceeded has refused a prompt that is too long", async () => {
  const tooLong = new RequestError("Too long.", { code: "context_length_exceeded" });
  const [end] = await run(() => {
    throw tooLong;
  });
  expect(end).toMatchObject({ end: { kind: "rejected", failure: { kind: "context-overflow", status: 400 } } });
});

// Both were taken out of what a program gets, and nothing was done in their place.
describe("legacy completions over a program", () => {
  const completion = (members: Record<string, unknown>): GenerationRequest =>
    readCompletionRequest({ model: "m", prompt: ["One, ", "Two, "], ...members }, "req_1").request;
  const program = defineProgram(() => "STOP three.");

  test("echo gives each prompt back before its answers, whatever the stop strings", async () => {
    expect(text(await run(program, completion({ echo: true, n: 2, stop: "," })))).toEqual([
      "One, STOP three.",
      "One, STOP three.",
      "Two, STOP three.",
      "Two, STOP three.",
    ]);
    expect(text(await run(program, completion({})))).toEqual(["STOP three.", "STOP three."]);
  });

  test.each([
    ["best_of", { best_of: 2 }],
    ["prompt", { echo: true, prompt: [[1, 2]] }],
  ])("%s is refused where the program cannot do it", async (param, members) => {
    expect(await run(program, completion(members))).toMatchObject([{ end: { kind: "rejected", failure: { param } } }]);
  });
});

// The calls that a program makes as events went out whatever the client asked for; only calls in its text were held to the request.
describe("a program that calls a tool although the request allows none", () => {
  const program = defineProgram(function* () {
    yield "Let me";
    yield { type: "tool-call", name: "look", arguments: { at: 1 } } as const;
    yield { type: "tool-call-start", name: "look" } as const;
    yield { type: "tool-call-delta", arguments: "{}" } as const;
    yield " see.";
    yield { type: "finish", reason: "tool-calls" } as const;
  });
  const tools = [{ type: "function", function: { name: "look" } }];
  const bodies: [string, Record<string, unknown>][] = [
    ["there are no tools", {}],
    ["the list of tools is empty", { tools: [] }],
    ["tool_choice is none", { tools, tool_choice: "none" }],
    ["function_call is none", { functions: [{ name: "look" }], function_call: "none" }],
  ];
  test.each(bodies)("where %s: the client gets the text alone, and the log one line", async (_, body) => {
    const lines: string[] = [];
    const events: GenerationEvent[] = [];
    const options = {
      format: plainText,
      newCallId: () => "c",
      showErrors: false,
      warn: (line: string) => lines.push(line),
    };
    for await (const batch of runProgram(program, requestOf(body), new AbortController().signal, options))
      events.push(...batch);
    expect(accumulate(events).choices).toMatchObject([
      { text: "Let me see.", toolCalls: [], finish: { reason: "stop" } },
    ]);
    expect(events.some(({ type }) => type.startsWith("tool-call"))).toBe(false);
    expect(lines).toEqual([expect.stringMatching(/^req_1: a tool call of the program was dropped, because .*: look$/)]);
  });

  test("where the request has the tool, the calls go out", async () => {
    const [choice] = accumulate(await run(program, requestOf({ tools }))).choices;
    expect(choice).toMatchObject({ toolCalls: [{ name: "look" }, { name: "look" }], finish: { reason: "tool-calls" } });
  });
});

test("the program may ask for the response schema", async () => {
  const output = {
    type: "json-schema",
    name: "answer",
    schema: { type: "object" },
    strict: true,
    path: "response_format",
  } as const;
  let seen: ProgramInput | undefined;
  await run(
    (input) => {
      seen = input;
      return { object: {} };
    },
    requestOf({}, { output }),
  );
  expect(seen?.responseSchema).toEqual({ name: "answer", schema: { type: "object" }, strict: true });
});

test("n runs side by side, each knows its choice, usage counts the prompt once", async () => {
  const events = await run(
    async function* ({ request }) {
      yield `choice ${request.choice}`;
      yield { type: "usage", usage: { promptTokens: 5, completionTokens: 2 } };
    },
    requestOf({}, { n: 3 }),
  );
  expect(text(events)).toEqual(["choice 0", "choice 1", "choice 2"]);
  expect(accumulate(events).usage).toEqual({ promptTokens: 5, completionTokens: 6 });
});

test("a RequestError is the client's fault, anything else is a 500 without a stack trace", async () => {
  const bad = await run(() => {
    throw new RequestError("No such city.", { param: "messages", code: "no_city" });
  });
  expect(bad).toMatchObject([
    {
      end: { kind: "rejected", failure: { status: 400, message: "No such city.", param: "messages", code: "no_city" } },
    },
  ]);
  const broken = await run(async function* () {
    yield "half";
    throw new Error("disk full");
  });
  expect(text(broken)).toEqual(["half"]);
  // What a program threw went to clients word for word, and a defect sent agents into a minute of silent retries.
  const told = "The program failed. The server's log says why, under the request id req_1.";
  expect(broken.at(-1)).toMatchObject({
    end: { kind: "engine-error", failure: { status: 500, message: told, headers: { "x-should-retry": "false" } } },
  });
  const shown = await run(
    () => {
      throw new Error("disk full");
    },
    requestOf(),
    new AbortController().signal,
    true,
  );
  expect(shown).toMatchObject([{ end: { failure: { message: "The program failed: disk full" } } }]);
  const passing = await run(() => {
    throw new RequestError("Try again.", { status: 503 });
  });
  expect(passing).toMatchObject([{ end: { failure: { status: 503, message: "Try again." } } }]);
  expect(JSON.stringify(passing)).not.toContain("x-should-retry");
});

// The thread of a program is a bundle, and the program's own import of truewire has another class of this name.
test("a FailureError of another copy of the package keeps its kind and status", async () => {
  const failure = { kind: "overloaded", message: "Full.", status: 529 };
  const events = await run(() => {
    throw Object.assign(new Error("Full."), { name: "FailureError", failure });
  });
  expect(events.at(-1)).toMatchObject({ type: "end", end: { kind: "rejected", failure } });
});

// The program's message had the list of numbers as its content.
test("a prompt of token ids is refused, since a program has none", async () => {
  const tokens = { prompt: { kind: "text", prompts: ["a", [1, 2]] } } as const;
  expect(await run(({ messages }) => JSON.stringify(messages), requestOf({}, tokens))).toMatchObject([
    { end: { kind: "rejected", failure: { status: 400, param: "prompt", code: "unsupported_value" } } },
  ]);
});

describe("logprobs", () => {
  const asks = requestOf({ logprobs: true, top_logprobs: 1 });

  test("that a program does not offer are refused, not null without a word", async () => {
    expect(await run(() => "Hi", asks)).toMatchObject([
      { end: { kind: "rejected", failure: { status: 400, param: "logprobs", code: "unsupported_parameter" } } },
    ]);
  });

  test("that it offers go out with its text", async () => {
    const program = defineProgram(
      function* () {
        const logprobs = [
          { token: "Gr\u00fc", logprob: -0.5, top: [{ token: "Ha", logprob: -1 }] },
          { token: "n", logprob: -0.1 },
        ];
        yield { type: "text" as const, text: "Gr\u00fcn", logprobs };
      },
      ["logprobs"],
    );
    const events = await run(program, asks);
    expect(accumulate(events).choices[0]).toMatchObject({
      parts: [
        {
          text: "Gr\u00fcn",
          logprobs: [
            { token: "Gr\u00fc", logprob: -0.5, bytes: [71, 114, 195, 188], top: [{ token: "Ha", bytes: [72, 97] }] },
            { token: "n", top: [] },
          ],
        },
      ],
    });
  });

  test("of other tokens than the text has are the program's defect", async () => {
    const program = defineProgram(
      () => [{ type: "text" as const, text: "Hi", logprobs: [{ token: "Ho", logprob: -1 }] }],
      ["logprobs"],
    );
    expect((await run(program, asks)).at(-1)).toMatchObject({ end: { kind: "engine-error" } });
  });
});

test("an abort ends the run though the program never looks at its signal, and its finally block runs", async () => {
  const client = new AbortController();
  let cleaned = false;
  const events = await run(
    async function* () {
      try {
        yield "one";
        client.abort();
        yield "two";
        await new Promise(() => {});
      } finally {
        cleaned = true;
      }
    },
    requestOf(),
    client.signal,
  );
  expect(text(events)).toEqual(["one"]);
  expect(events.at(-1)).toEqual({ type: "end", end: { kind: "client-gone" } });
  await new Promise((resolve) => setTimeout(resolve));
  expect(cleaned).toBe(true);
});
