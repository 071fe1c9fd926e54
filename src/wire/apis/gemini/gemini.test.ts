import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import { assistantParts, type Message } from "../../core/message.ts";
import { runSync } from "../../core/steps.ts";
import type { AnswerContext, ReadOptions, ReadRequest } from "../port.ts";
import { exact, lean, type Profile } from "../profile.ts";
import { asJsonSchema } from "./json-schema.ts";
import { geminiErrorFormat, geminiPath, geminiPort } from "./port.ts";
import { geminiResponse } from "./schema.ts";
import { writeGeminiRequest } from "./send.ts";

const ask = [{ role: "user", parts: [{ text: "Hi" }] }];
const sse: ReadOptions = { query: (name) => (name === "alt" ? "sse" : undefined) };

function read(body: object, options: ReadOptions = sse): ReadRequest {
  return runSync(geminiPort.readRequest({ model: "m", contents: ask, ...body }, "req_1", options));
}

function messagesOf(contents: readonly object[], options?: ReadOptions): readonly Message[] {
  const { prompt } = read({ contents }, options).request;
  return prompt.kind === "chat" ? prompt.messages : [];
}

function refusal(body: object, profile: Profile = exact): FailureError["failure"] {
  try {
    read(body, { ...sse, profile });
  } catch (error) {
    if (error instanceof FailureError) return error.failure;
    throw error;
  }
  throw new Error("The request was accepted.");
}

const context = (profile: Profile): AnswerContext => ({
  profile,
  created: 1,
  model: "m",
  settings: {},
  random: () => 0,
});

const start: GenerationEvent = { type: "start", choice: 0 };
const usage: GenerationEvent = {
  type: "usage",
  usage: {
    promptTokens: 44,
    completionTokens: 30,
    promptDetails: { cached_tokens: 4 },
    completionDetails: { reasoning_tokens: 20 },
  },
};
const end: GenerationEvent = { type: "end", end: { kind: "done" } };
const finish = (reason: "stop" | "length" | "tool-calls" | "content-filter"): GenerationEvent => ({
  type: "finish",
  choice: 0,
  reason,
});
const text = (value: string): GenerationEvent => ({ type: "text-delta", choice: 0, text: value });
const call = (id: string, name: string, args: string, state?: object): GenerationEvent[] => [
  { type: "tool-call-start", choice: 0, index: Number(id.slice(-1)), id, name, ...state },
  { type: "tool-call-delta", choice: 0, index: Number(id.slice(-1)), arguments: args },
  { type: "tool-call-end", choice: 0, index: Number(id.slice(-1)), status: "succeeded" },
];

function stream(events: readonly GenerationEvent[], body: object = {}, profile = lean, options = sse): string {
  const writer = read({ ...body, stream: true }, { ...options, profile }).streamWriter(context(profile));
  return events.map((event) => writer.write([event])).join("");
}

function whole(events: readonly GenerationEvent[], body: object = {}, profile = lean): Answer {
  const written = read(body, { ...sse, profile }).writeResponse(accumulate(events), context(profile));
  return JSON.parse(written) as Answer;
}

interface Part {
  readonly text?: string;
  readonly thought?: boolean;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: object };
}

interface Answer {
  readonly candidates: readonly {
    readonly content: { readonly parts: readonly Part[]; readonly role: string };
    readonly finishReason?: string;
    readonly finishMessage?: string;
    readonly logprobsResult?: unknown;
    readonly groundingMetadata?: unknown;
    readonly urlContextMetadata?: unknown;
  }[];
  readonly usageMetadata?: object;
}

function chunksOf(written: string): Answer[] {
  return written
    .split(/\r?\n\r?\n/)
    .filter((frame) => frame.startsWith("data: "))
    .map((frame) => JSON.parse(frame.slice(6)) as Answer);
}

function partsOf(answers: readonly Answer[]): Part[] {
  return answers.flatMap(({ candidates }) => candidates.flatMap(({ content }) => content.parts));
}

describe("paths", () => {
  test.each([
    ["/v1beta/models/gemini-3-pro:generateContent", "gemini-3-pro", "generateContent", false],
    ["/v1/models/m:streamGenerateContent", "m", "generateContent", true],
    ["/v1beta/models/org/name:8b:countTokens", "org/name:8b", "countTokens", false],
    ["/v1alpha/tunedModels/t:batchEmbedContents/", "t", "batchEmbedContents", false],
  ])("%s", (path, model, method, isStream) => {
    expect(geminiPath(path)).toEqual({ path: `/v1beta/models:${method}`, model, stream: isStream });
  });

  test.each([
    "/v1/models",
    "/v1/models/m",
    "/v1/models/m:8b",
    "/v1beta/models/:generateContent",
    "/v1/chat/completions",
  ])("%s is none of them", (path) => expect(geminiPath(path)).toBeUndefined());
});

describe("requests", () => {
  test("both spellings of names, and one object in place of a list", () => {
    const camel = read({
      systemInstruction: { parts: [{ text: "Be brief." }] },
      generationConfig: { maxOutputTokens: 5, topP: 0.5, stopSequences: ["x"], thinkingConfig: { thinkingBudget: 0 } },
    });
    const snake = read({
      contents: { parts: { text: "Hi" } },
      system_instruction: { parts: { text: "Be brief." } },
      generation_config: {
        max_output_tokens: "5",
        top_p: 0.5,
        stop_sequences: ["x"],
        thinking_config: { thinking_budget: 0 },
      },
    });
    const { passthrough: _, ...request } = camel.request;
    expect(request).toMatchObject({
      limits: { maxTokens: 5, stop: ["x"] },
      sampling: { topP: 0.5 },
      reasoning: { mode: "off" },
    });
    const { passthrough: __, ...other } = snake.request;
    expect(other).toEqual(request);
  });

  test("names inside of arguments, results and schemas stay as they are", () => {
    const parameters = { type: "OBJECT", properties: { max_items: { type: "INTEGER", nullable: true } } };
    const { request } = read({
      contents: [
        ...ask,
        { role: "model", parts: [{ function_call: { id: "1", name: "f", args: { max_tokens: 1 } } }] },
        { role: "user", parts: [{ function_response: { id: "1", name: "f", response: { is_ok: true } } }] },
      ],
      tools: { function_declarations: { name: "f", parameters } },
    });
    expect(request.tools).toMatchObject([
      { parameters: { type: "object", properties: { max_items: { type: ["integer", "null"] } } } },
    ]);
    expect(request.prompt).toMatchObject({
      messages: [
        { role: "user" },
        { role: "assistant", content: [{ type: "tool-call", id: "1", arguments: '{"max_tokens":1}' }] },
        { role: "tool", toolCallId: "1", name: "f", content: '{"is_ok":true}' },
      ],
    });
  });

  test("the chunks of a stream that a client returns are one message", () => {
    const model = (...parts: object[]) => ({ role: "model", parts });
    const messages = messagesOf([
      ...ask,
      model({ text: "a ", thought: true }),
      model({ text: "b", thought: true }),
      model({ text: "The " }),
      model({ text: "fox" }),
      model({ functionCall: { name: "f", args: {} } }, { functionCall: { name: "g" } }),
      { role: "user", parts: [{ functionResponse: { name: "g", response: { error: "no" } } }] },
      { role: "user", parts: [{ functionResponse: { name: "f", response: { output: "yes" } } }, { text: "Go on" }] },
    ]);
    expect(messages).toMatchObject([
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: [
          { type: "reasoning", text: "a b" },
          { type: "text", text: "The fox" },
          { type: "tool-call", name: "f", arguments: "{}" },
          { type: "tool-call", name: "g", arguments: "{}" },
        ],
      },
      { role: "tool", name: "g", content: "no", isError: true },
      { role: "tool", name: "f", content: "yes" },
      { role: "user", content: "Go on" },
    ]);
    // Calls without ids are paired with their results by name.
    const [, assistant, ...results] = messages;
    const ids = assistantParts(assistant as Extract<Message, { role: "assistant" }>).flatMap((part) =>
      part.type === "tool-call" ? [part.id] : [],
    );
    expect(results.flatMap((one) => (one.role === "tool" ? [one.toolCallId] : []))).toEqual([...ids].reverse());
  });

  test("images, sounds, files, code and its output", () => {
    const inline = (mimeType: string) => ({ inlineData: { mimeType, data: "QUJD" } });
    const [message] = messagesOf([
      {
        parts: [
          inline("image/png"),
          inline("audio/mpeg"),
          inline("application/pdf"),
          { fileData: { mimeType: "image/jpeg", fileUri: "https://host/a.jpg" } },
          { executableCode: { language: "PYTHON", code: "print(1)\n" } },
        ],
      },
    ]);
    expect(message?.content).toMatchObject([
      { type: "image", url: "data:image/png;base64,QUJD" },
      { type: "audio", format: "mp3", data: "QUJD" },
      { type: "file", data: "data:application/pdf;base64,QUJD" },
      { type: "image", url: "https://host/a.jpg" },
      { type: "text", text: "```python\nprint(1)\n```\n" },
    ]);
  });

  test("tools, choices and forms of the answer", () => {
    const schema = { type: "STRING", enum: ["a", "b"], format: "enum" };
    const { request, warnings } = read({
      tools: [
        { functionDeclarations: [{ name: "f", parametersJsonSchema: { type: "object" } }] },
        { googleSearch: {} },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
      generationConfig: {
        responseMimeType: "text/x.enum",
        responseSchema: schema,
        candidateCount: 2,
        thinkingConfig: { thinkingLevel: "LOW" },
      },
    });
    expect(request).toMatchObject({
      n: 2,
      tools: [{ name: "f", parameters: { type: "object" } }],
      hostedTools: [{ kind: "web_search", name: "googleSearch" }],
      toolChoice: { type: "allowed", mode: "required", names: ["f"] },
      output: { type: "choice", options: ["a", "b"] },
      reasoning: { effort: "low" },
    });
    expect(warnings).toEqual([expect.stringContaining("tools[1].googleSearch: nothing here runs googleSearch")]);
  });

  test("Google's schemas as JSON Schema", () => {
    expect(
      asJsonSchema({
        type: "OBJECT",
        propertyOrdering: ["b", "a"],
        properties: {
          a: { type: "ARRAY", items: { type: "STRING" }, minItems: "1", max_items: "3" },
          b: { anyOf: [{ type: "NUMBER" }, { type: "STRING", format: "date-time" }], nullable: true },
        },
      }),
    ).toEqual({
      type: "object",
      properties: {
        b: { anyOf: [{ anyOf: [{ type: "number" }, { type: "string", format: "date-time" }] }, { type: "null" }] },
        a: { type: "array", items: { type: "string" }, minItems: 1, maxItems: 3 },
      },
    });
  });

  test("mistakes are refused in Google's words, with the path", () => {
    const of = (body: object, profile?: Profile) => {
      const { message, param } = refusal(body, profile);
      return [message, param];
    };
    expect(of({ contents: [] })).toEqual([
      "* GenerateContentRequest.contents: contents is not specified\n",
      "contents",
    ]);
    expect(of({ contents: [{ parts: [{ text: 1 }] }] }, lean)).toEqual([
      "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 1",
      "contents[0].parts[0].text",
    ]);
    expect(of({ generationConfig: { topP: "x" } })).toEqual([
      "Invalid value at 'generation_config.top_p' (TYPE_FLOAT), \"x\"",
      "generationConfig.topP",
    ]);
    expect(of({ contents: [{ parts: [{ inlineData: { mimeType: "image/png", data: "*" } }] }] }, lean)[0]).toBe(
      "Invalid value at 'contents[0].parts[0].inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"*\"",
    );
    expect(of({ generationConfig: { foo: 1 }, bar: 1 })[0]).toBe(
      'Invalid JSON payload received. Unknown name "foo" at \'generation_config\': Cannot find field.\nInvalid JSON payload received. Unknown name "bar": Cannot find field.',
    );
    expect(of({ contents: [{ role: "robot", parts: [{ text: "a" }] }] }, lean)[0]).toBe(
      "Please use a valid role: user, model.",
    );
    expect(of({ contents: [{ parts: [{ fileData: { fileUri: "files/abc" } }] }] }, lean)[0]).toContain("inlineData");
    expect(of({ cachedContent: "cachedContents/1" }, lean)[0]).toContain("CachedContent not found");
    expect(read({ generationConfig: { foo: 1 } }).warnings).toEqual([
      expect.stringContaining("Google would answer 400: Invalid JSON payload received."),
    ]);
  });
});

describe("answers", () => {
  const spoken = [start, text("The weather in Berlin"), text(" is 15°C."), finish("stop"), usage, end];

  // The form of the recordings in crmne/ruby_llm: a space after each colon, lines that end with CR LF.
  test("a stream in profile exact", () => {
    const detail =
      '"promptTokensDetails": [{"modality": "TEXT","tokenCount": 44}],"cacheTokensDetails": [{"modality": "TEXT","tokenCount": 4}]';
    const tail = '"modelVersion": "m","responseId": "AAAAAAAAAAAAAAAAAAAAAAA"}\r\n\r\n';
    expect(stream(spoken, {}, exact)).toBe(
      `data: {"candidates": [{"content": {"parts": [{"text": "The weather in Berlin"}],"role": "model"},"index": 0}],${tail}` +
        `data: {"candidates": [{"content": {"parts": [{"text": " is 15°C."}],"role": "model"},"index": 0}],${tail}` +
        `data: {"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","index": 0}],` +
        `"usageMetadata": {"promptTokenCount": 44,"candidatesTokenCount": 10,"totalTokenCount": 74,"cachedContentTokenCount": 4,${detail},"thoughtsTokenCount": 20,"serviceTier": "standard"},${tail}`,
    );
  });

  test("a stream as a list is one JSON value, and an error its last item", () => {
    const list = { query: () => undefined };
    for (const profile of [lean, exact]) {
      const written = stream(spoken, {}, profile, list);
      const items = JSON.parse(written) as Answer[];
      expect(items.map(({ candidates }) => candidates[0]?.content.parts[0]?.text)).toEqual([
        "The weather in Berlin",
        " is 15°C.",
        "",
      ]);
      expect(written.startsWith(profile === exact ? '[{\n  "candidates": [\n' : '[{"candidates"')).toBe(true);
      if (profile === exact) expect(written).toContain("}\n,\r\n{\n");
      const failure = { kind: "overloaded", message: "Full.", status: 503 } as const;
      const failed = stream(
        [start, text("a"), { type: "end", end: { kind: "upstream-error", failure } }],
        {},
        profile,
        list,
      );
      expect(JSON.parse(failed)).toMatchObject([{ candidates: [{}] }, { error: { code: 503, status: "UNAVAILABLE" } }]);
    }
    expect(stream([end], {}, lean, list)).toMatch(/^\[\{.*\}\]$/s);
  });

  test.each([lean, exact])(
    "each chunk, and the whole answer, has the schema's members in its order: $name",
    (profile) => {
      const events = [
        start,
        { type: "reasoning-delta", choice: 0, text: "Hm." } as const,
        text("a"),
        ...call("c0", "f", '{"x":1}'),
        finish("tool-calls"),
        usage,
        end,
      ];
      for (const chunk of [...chunksOf(stream(events, {}, profile)), whole(events, {}, profile)])
        expect(geminiResponse.strict().safeParse(chunk).error).toBeUndefined();
      const text2 = stream([start, text("ab\n"), usage, text("c"), end], {}, profile);
      const [one, two] = chunksOf(text2);
      expect(partsOf([one, two] as Answer[]).map((part) => part.text)).toEqual(["ab\n", "c"]);
      expect(two?.usageMetadata).toMatchObject({ totalTokenCount: 74 });
    },
  );

  test("calls come with the end of the answer, and no call of an answer that fails", () => {
    const events = [start, text("a"), ...call("c0", "f", '{"x":1}'), ...call("c1", "g", "")];
    const chunks = chunksOf(stream([...events, finish("tool-calls"), usage, end]));
    expect(chunks).toHaveLength(2);
    expect(chunks[1]?.candidates[0]).toMatchObject({
      content: {
        parts: [
          { functionCall: { name: "f", args: { x: 1 }, id: "c0" } },
          { functionCall: { name: "g", args: {}, id: "c1" } },
        ],
      },
      finishReason: "STOP",
      finishMessage: "Model generated function call(s).",
    });
    const failure = { kind: "bad-answer", message: "Cut.", status: 502 } as const;
    const failed = stream([...events, { type: "end", end: { kind: "truncated", failure } }]);
    expect(failed).not.toContain("functionCall");
    expect(failed).toContain('data: {"error":{"code":500,"message":"Cut.","status":"INTERNAL"}}');
  });

  test("a call that is no object is a finish reason", () => {
    const events = [start, ...call("c0", "f", "{x"), finish("tool-calls"), end];
    for (const answer of [whole(events), ...chunksOf(stream(events))])
      expect(answer.candidates[0]).toMatchObject({
        finishReason: "MALFORMED_FUNCTION_CALL",
        finishMessage: "Malformed function call: f({x)",
      });
  });

  test("thoughts are shown if the request includes them; in profile lean unless it excludes them", () => {
    const events = [
      start,
      { type: "reasoning-delta", choice: 0, text: "Hm." } as const,
      text("a"),
      finish("stop"),
      end,
    ];
    const shown = (includeThoughts: boolean | undefined, profile: Profile) => {
      const body = { generationConfig: { thinkingConfig: { includeThoughts } } };
      const all = [whole(events, body, profile), ...chunksOf(stream(events, body, profile))].map((one) =>
        partsOf([one]),
      );
      return all.filter((parts) => parts.some(({ thought, text: value }) => thought === true && value === "Hm."))
        .length;
    };
    expect([shown(true, lean), shown(undefined, lean), shown(false, lean)]).toEqual([2, 2, 0]);
    expect([shown(true, exact), shown(undefined, exact), shown(false, exact)]).toEqual([2, 0, 0]);
  });

  test("log probabilities", () => {
    const logprobs = [{ token: "a", logprob: -0.5, bytes: null, top: [{ token: "b", logprob: -2, bytes: null }] }];
    const body = { generationConfig: { responseLogprobs: true, logprobs: 1 } };
    const events: GenerationEvent[] = [
      start,
      { type: "text-delta", choice: 0, text: "a", logprobs },
      finish("length"),
      end,
    ];
    const result = {
      topCandidates: [{ candidates: [{ token: "b", logProbability: -2 }] }],
      chosenCandidates: [{ token: "a", logProbability: -0.5 }],
    };
    expect(whole(events, body).candidates[0]).toMatchObject({
      avgLogprobs: -0.5,
      logprobsResult: result,
      finishReason: "MAX_TOKENS",
    });
    expect(chunksOf(stream(events, body))[0]?.candidates[0]?.logprobsResult).toEqual(result);
  });

  test("hosted tools: searches, pages and code", () => {
    const hosted = (id: string, kind: "web_search" | "web_fetch" | "code_interpreter", args: object, result: object) =>
      [
        { type: "hosted-call-start", choice: 0, id, kind, tool: kind, name: kind },
        { type: "hosted-call-delta", choice: 0, id, arguments: JSON.stringify(args) },
        { type: "hosted-call-end", choice: 0, id },
        { type: "hosted-result", choice: 0, id, kind, tool: kind, name: kind, result },
      ] as unknown as GenerationEvent[];
    const found = [{ url: "https://a/", title: "A", text: "t" }];
    const events = [
      start,
      ...hosted("h1", "web_search", { query: "q" }, { kind: "search", results: found }),
      ...hosted(
        "h2",
        "code_interpreter",
        { code: "print(1)" },
        { kind: "code", stdout: "1\n", stderr: "", returnCode: 0 },
      ),
      ...hosted(
        "h3",
        "web_fetch",
        {},
        { kind: "document", url: "https://b/", mediaType: "text/plain", content: { text: "" }, retrieved: "" },
      ),
      text("a"),
      finish("stop"),
      end,
    ];
    const metadata = {
      groundingMetadata: { webSearchQueries: ["q"], groundingChunks: [{ web: { uri: "https://a/", title: "A" } }] },
      urlContextMetadata: {
        urlMetadata: [{ retrievedUrl: "https://b/", urlRetrievalStatus: "URL_RETRIEVAL_STATUS_SUCCESS" }],
      },
    };
    const code = [
      { executableCode: { language: "PYTHON", code: "print(1)", id: "h2" } },
      { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n", id: "h2" } },
    ];
    const answer = whole(events);
    expect(answer.candidates[0]).toMatchObject({ ...metadata, content: { parts: [...code, { text: "a" }] } });
    // The order of recorded answers.
    const { groundingMetadata } = answer.candidates[0] as unknown as typeof metadata;
    expect(Object.keys(groundingMetadata)).toEqual(["groundingChunks", "webSearchQueries"]);
    const chunks = chunksOf(stream(events));
    expect(partsOf(chunks)).toEqual([...code, { text: "a" }, { text: "" }]);
    expect(chunks.at(-1)?.candidates[0]).toMatchObject(metadata);
  });
});

describe("signatures", () => {
  const google = { kind: "call", value: { extra_content: { google: { thought_signature: "c2ln" } } } } as const;
  const thinking: GenerationEvent[] = [
    { type: "part-start", choice: 0, kind: "reasoning" },
    { type: "reasoning-delta", choice: 0, text: "Hm." },
    { type: "part-end", choice: 0, state: { kind: "signature", value: "c2lnbg==", source: "s" } },
  ];

  /** What the next request's model message has, if the client returns the parts, in one content or each in its own. */
  function returned(parts: readonly Part[], keep: (part: Part) => boolean = () => true): unknown[] {
    const kept = parts.filter(keep);
    return [kept.map((part) => ({ role: "model", parts: [part] })), [{ role: "model", parts: kept }]].map(
      (contents) => {
        const [, message] = messagesOf([...ask, ...contents]);
        return message?.role === "assistant" ? assistantParts(message) : [];
      },
    );
  }

  test("Google's own go out and in as they are", () => {
    const events = [
      start,
      ...call("c0", "f", "{}", { state: google }),
      ...call("c1", "g", "{}"),
      finish("tool-calls"),
      end,
    ];
    for (const parts of [partsOf([whole(events)]), partsOf(chunksOf(stream(events)))]) {
      expect(parts.map((part) => part.thoughtSignature)).toEqual(["c2ln", undefined]);
      for (const back of returned(parts)) expect(back).toMatchObject([{ id: "c0", state: google }, { id: "c1" }]);
    }
  });

  test("that of a text is in an empty text at the end of a stream, and in the text of a whole answer", () => {
    const state = { kind: "part", value: "c2ln" } as const;
    const events: GenerationEvent[] = [
      start,
      text("a"),
      { type: "part-start", choice: 0, kind: "reasoning" },
      { type: "part-end", choice: 0, state },
      finish("stop"),
      end,
    ];
    expect(partsOf([whole(events)])).toEqual([{ text: "a", thoughtSignature: "c2ln" }]);
    const chunks = chunksOf(stream(events));
    expect(partsOf(chunks)).toEqual([{ text: "a" }, { text: "", thoughtSignature: "c2ln" }]);
    for (const parts of [partsOf([whole(events)]), partsOf(chunks)])
      for (const back of returned(parts))
        expect(back).toEqual([
          { type: "text", text: "a" },
          { type: "reasoning", text: "", state },
        ]);
  });

  // Gemini CLI returns no thoughts, and google-genai for Python writes the alphabet of base 64 for URLs.
  test.each(["f", undefined])("another server's reasoning comes back before the call %s, or the text", (name) => {
    const events = [
      start,
      ...thinking,
      ...(name === undefined ? [text("b")] : call("c0", name, "{}")),
      finish("stop"),
      end,
    ];
    for (const parts of [partsOf([whole(events)]), partsOf(chunksOf(stream(events)))]) {
      const [thought, carrier] = parts;
      expect(thought).toEqual({ text: "Hm.", thought: true });
      expect(atob(carrier?.thoughtSignature ?? "")).toMatch(/^truewire\.2\./);
      const urlSafe = parts.map((part) => ({
        ...part,
        ...(part.thoughtSignature !== undefined && {
          thoughtSignature: part.thoughtSignature.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
        }),
      }));
      for (const back of [
        ...returned(parts),
        ...returned(parts, (part) => part.thought !== true),
        ...returned(urlSafe),
      ])
        expect(back).toEqual([
          { type: "reasoning", text: "Hm.", state: { kind: "signature", value: "c2lnbg==", source: "s" } },
          name === undefined ? { type: "text", text: "b" } : { type: "tool-call", id: "c0", name, arguments: "{}" },
        ]);
    }
  });

  // A stand-in for the second call made a prompt that differed from the one that the server had cached.
  test.each([
    ["c2ln", ["c2ln", undefined]],
    [undefined, ["skip_thought_signature_validator", undefined]],
  ])("of parallel calls, the first alone has one: %s", (signature, expected) => {
    const parts = ["f", "g"].map((name, at) => ({
      functionCall: { id: `c${at}`, name, args: {} },
      ...(at === 0 && signature !== undefined && { thoughtSignature: signature }),
    }));
    const { passthrough: _, ...request } = read({ contents: [...ask, { role: "model", parts }] }).request;
    const { contents } = writeGeminiRequest(request, { stateDemand: "extra_content" }) as unknown as {
      readonly contents: readonly { readonly parts: readonly { readonly thoughtSignature?: string }[] }[];
    };
    expect(contents[1]?.parts.map(({ thoughtSignature }) => thoughtSignature)).toEqual(expected);
  });

  test("the stand-in of clients is no state", () => {
    const [back] = returned([
      { thoughtSignature: "skip_thought_signature_validator", functionCall: { id: "c0", name: "f", args: {} } },
    ]);
    expect(back).toEqual([{ type: "tool-call", id: "c0", name: "f", arguments: "{}" }]);
  });
});

describe("errors", () => {
  const written = (failure: FailureError["failure"], profile = lean) =>
    geminiErrorFormat.writeFailure(failure, profile, "req_1");

  // The body of the recording of 2026-08-19 in crmne/ruby_llm, chat_error_handling_with_gemini.
  test("a wrong key in profile exact", () => {
    const failure = { kind: "authentication", message: "x", status: 401, code: "invalid_api_key" } as const;
    const { status, body, contentType } = written(failure, exact);
    expect({ status, contentType }).toEqual({ status: 400, contentType: "application/json; charset=UTF-8" });
    expect(
      body.startsWith(
        '{\n  "error": {\n    "code": 400,\n    "message": "API key not valid. Please pass a valid API key.",\n    "status": "INVALID_ARGUMENT",\n    "details": [\n',
      ),
    ).toBe(true);
    expect(body.endsWith("    ]\n  }\n}\n")).toBe(true);
    expect(JSON.parse(body)).toMatchObject({
      error: { details: [{ reason: "API_KEY_INVALID" }, { locale: "en-US" }] },
    });
  });

  test("statuses, and when to retry", () => {
    const of = (kind: FailureError["failure"]["kind"], status: number, more = {}) => {
      const { error } = JSON.parse(written({ kind, status, message: "m", ...more }).body) as {
        error: { code: number; status: string };
      };
      return [error.code, error.status];
    };
    expect(of("authentication", 401)).toEqual([403, "PERMISSION_DENIED"]);
    expect(of("not-found", 404)).toEqual([404, "NOT_FOUND"]);
    expect(of("too-large", 413)).toEqual([400, "INVALID_ARGUMENT"]);
    expect(of("rate-limited", 429)).toEqual([429, "RESOURCE_EXHAUSTED"]);
    expect(of("bad-answer", 502)).toEqual([500, "INTERNAL"]);
    expect(of("timeout", 504)).toEqual([504, "DEADLINE_EXCEEDED"]);
    expect(
      JSON.parse(written({ kind: "rate-limited", status: 429, message: "m", retryAfterSeconds: 2.5 }).body),
    ).toMatchObject({
      error: { details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "3s" }] },
    });
    const tokens = { asked: 9000, most: 4096 };
    expect(written({ kind: "context-overflow", status: 400, message: "m", tokens }).body).toContain(
      "The input token count (9000) exceeds the maximum number of tokens allowed (4096).",
    );
  });
});
