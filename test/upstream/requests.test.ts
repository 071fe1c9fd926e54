import { afterEach, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { startTruewire } from "../support/serve.ts";
import { chat } from "../support/transports.ts";
import { ask, startGateway } from "./gateway.ts";
import { bodyOf, done, event, finish, role, say, startScripted, streamOf } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";
import { strictMessage } from "./strict-client.ts";
import { listenInTest } from "../support/close-after-test.ts";

const running: (ScriptedServer | TruewireServer)[] = [];

afterEach(async () => {
  for (const server of running.splice(0).reverse()) await server.close(0);
});

/** An upstream that says "Hello" (or what `script` says) with Truewire before it. */
async function setUp(
  options: Parameters<typeof startGateway>[1],
  script: Parameters<typeof startScripted>[0] = (response, body) => say(response, body, "Hello"),
): Promise<{ source: ScriptedServer; truewire: TruewireServer }> {
  const source = await startScripted(script);
  running.push(source);
  const truewire = await startGateway(source.url, options);
  running.push(truewire);
  return { source, truewire };
}

const system = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "Hi" },
];

describe("what the upstream is sent", () => {
  test("the client's members as they came, unknown ones too", async () => {
    const { source, truewire } = await setUp({});
    const members = { temperature: 0, metadata: { a: "b" }, my_own: [1, null], messages: system, top_k: 3 };
    expect((await ask(truewire, members)).status).toBe(200);
    expect(source.requests[0]?.body).toEqual({ model: "m", ...members });
  });

  test("the key, headers of the configuration, and nothing of the client's", async () => {
    const { source, truewire } = await setUp({ key: "sk-upstream", headers: { "X-Team": "blue" } });
    await ask(truewire);
    const headers = source.requests[0]?.headers;
    expect(headers).toMatchObject({
      authorization: "Bearer sk-upstream",
      "x-team": "blue",
      accept: "application/json",
    });
    // A UUID: starlette-context, as in llama-cpp-python's server, answers any other id with status 400.
    expect(headers?.["x-request-id"]).toMatch(/^[0-9a-f]{32}$/);
  });

  test("the model's name there", async () => {
    const { source, truewire } = await setUp({ models: { mine: "vendor/theirs-8b" } });
    const { text } = await ask(truewire, { model: "mine" });
    expect(source.requests[0]?.body["model"]).toBe("vendor/theirs-8b");
    expect((JSON.parse(text) as { model: string }).model).toBe("mine");
  });

  test("members dropped, renamed and added", async () => {
    const requests = {
      drop: ["seed"],
      rename: { top_k: "top_candidates" },
      add: { safe_mode: true, temperature: 0.5 },
    };
    const { source, truewire } = await setUp({ requests });
    await ask(truewire, { seed: 1, top_k: 0, temperature: 1 });
    expect(source.requests[0]?.body).toEqual({
      model: "m",
      messages: [{ role: "user", content: "Hi" }],
      top_candidates: 0,
      safe_mode: true,
      temperature: 0.5,
    });
  });

  test.each([
    ["max_tokens", { max_completion_tokens: 5 }],
    ["max_completion_tokens", { max_tokens: 5 }],
  ] as const)("the limit as %s", async (maxTokensMember, members) => {
    const { source, truewire } = await setUp({ requests: { maxTokensMember } });
    await ask(truewire, members);
    const { body = {} } = source.requests[0] ?? {};
    expect([body["max_tokens"], body["max_completion_tokens"]].filter((value) => value !== undefined)).toEqual([5]);
    expect(body[maxTokensMember]).toBe(5);
  });

  test.each(["system", "developer"] as const)("instructions with the role %s", async (instructionRole) => {
    const { source, truewire } = await setUp({ requests: { instructionRole, systemMessages: "anywhere" } });
    await ask(truewire, { messages: [...system, { role: "developer", content: "And kind." }] });
    const messages = source.requests[0]?.body["messages"] as { role: string }[];
    expect(messages.map(({ role }) => role)).toEqual([instructionRole, "user", instructionRole]);
  });

  test("usage is asked for exactly when the client asks, and shown only then", async () => {
    const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}\n\n`;
    const { source, truewire } = await setUp({}, (response) =>
      response.end(role + event({ content: "Hi" }) + finish + chunk + done),
    );
    const without = await ask(truewire, { stream: true });
    const asked = await ask(truewire, { stream: true, stream_options: { include_usage: true } });
    expect(source.requests.map(({ body }) => body["stream_options"])).toEqual([undefined, { include_usage: true }]);
    expect(strictMessage(without.text).usage).toBeNull();
    expect(strictMessage(asked.text).usage).toEqual([3, 1]);
  });
});

describe("legacy functions", () => {
  const functions = [{ name: "f", description: "d", parameters: { type: "object", properties: {} } }];
  const tools = [{ type: "function", function: functions[0] }];
  const history = [
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "42" },
  ];
  const calls =
    role +
    event({ tool_calls: [{ index: 0, id: "call_2", type: "function", function: { name: "f", arguments: "{}" } }] });

  test("become tools for an upstream of today, and the answer comes back in kind", async () => {
    const { source, truewire } = await setUp({}, (response) => response.end(calls + event({}, "tool_calls") + done));
    const { text } = await ask(truewire, { stream: true, functions, function_call: { name: "f" } });
    expect(source.requests[0]?.body).toMatchObject({
      tools,
      tool_choice: { type: "function", function: { name: "f" } },
    });
    expect(source.requests[0]?.body).not.toHaveProperty("functions");
    expect(text).toContain('"function_call":{"name":"f"');
    expect(text).not.toContain("tool_calls");
  });

  test("are made of tools for an upstream that only knows them", async () => {
    const legacy = role + event({ function_call: { name: "f", arguments: "{}" } }) + event({}, "function_call") + done;
    const { source, truewire } = await setUp({ requests: { legacyFunctions: true } }, (response) =>
      response.end(legacy),
    );
    const { text } = await ask(truewire, { stream: true, tools, tool_choice: "auto", messages: history });
    expect(source.requests[0]?.body).toMatchObject({
      functions,
      function_call: "auto",
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
        { role: "function", name: "f", content: "42" },
      ],
    });
    expect(source.requests[0]?.body).not.toHaveProperty("tools");
    expect(strictMessage(text)).toMatchObject({ calls: [["f", "{}"]], finish: "tool_calls" });
  });
});

describe("several choices from an upstream that takes only one", () => {
  const answer: Parameters<typeof startScripted>[0] = (response, body, attempt) => {
    const usage = { prompt_tokens: 7, completion_tokens: attempt, total_tokens: 7 + attempt };
    const last = `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage })}\n\n`;
    if (body["stream"] === true) response.end(role + event({ content: `Hello ${attempt}` }) + finish + last + done);
    else {
      const choices = [
        { index: 0, message: { role: "assistant", content: `Hello ${attempt}` }, finish_reason: "stop" },
      ];
      response.end(JSON.stringify({ id: "c", object: "chat.completion", created: 1, model: "m", choices, usage }));
    }
  };

  test.each([true, false])("are several calls, told as one answer (stream: %s)", async (stream) => {
    const { source, truewire } = await setUp({ singleChoice: true }, answer);
    const { text } = await ask(truewire, { n: 3, stream, ...(stream && { stream_options: { include_usage: true } }) });
    expect(source.requests).toHaveLength(3);
    expect(source.requests.every(({ body }) => body["n"] === undefined)).toBe(true);
    if (stream) {
      expect(strictMessage(text).usage).toEqual([7, 6]);
      for (const index of [0, 1, 2]) expect(text).toContain(`"choices":[{"index":${index},"delta":{"content":"Hello `);
    } else {
      const { choices, usage } = JSON.parse(text) as { choices: { message: { content: string } }[]; usage: object };
      expect(choices.map(({ message }) => message.content).sort()).toEqual(["Hello 1", "Hello 2", "Hello 3"]);
      expect(usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 6, total_tokens: 13 });
    }
  });

  // Each of the calls has them, and each chunk of the answer had them once more.
  test.each([true, false])("what they say beside their choices appears once (stream: %s)", async (stream) => {
    const options = { singleChoice: true, passExtra: ["citations", "cost"] };
    const { truewire } = await setUp(options, (response, body, attempt) => {
      const beside = `"citations":["u"],"cost":${attempt},"choices"`;
      response.end((body["stream"] === true ? streamOf("Hello") : bodyOf("Hello")).replaceAll('"choices"', beside));
    });
    const { text } = await ask(truewire, { n: 3, stream });
    expect(text.split('"citations":["u"]')).toHaveLength(2);
    // Values that differ are no repetition.
    if (stream) for (const cost of [1, 2, 3]) expect(text.split(`"cost":${cost}`)).toHaveLength(2);
  });

  test("one that fails ends all, with its error", async () => {
    const { truewire } = await setUp({ singleChoice: true, retries: 0 }, (response, body, attempt) => {
      if (attempt === 2) response.writeHead(400).end('{"error":{"message":"no","type":"invalid_request_error"}}');
      else answer(response, body, attempt);
    });
    expect((await ask(truewire, { n: 3 })).status).toBe(400);
  });
});

test("rate-limit headers of an answer are passed on, others are not", async () => {
  const { truewire } = await setUp({}, (response, body) => {
    response.setHeader("x-ratelimit-remaining-tokens", "99").setHeader("x-served-by", "rack 7");
    say(response, body, "Hello");
  });
  for (const members of [{}, { stream: true }]) {
    const { headers } = await ask(truewire, members);
    expect(headers.get("x-ratelimit-remaining-tokens")).toBe("99");
    expect(headers.get("x-served-by")).toBeNull();
  }
});

test("what a source adds is passed on where the configuration names it", async () => {
  const script: Parameters<typeof startScripted>[0] = (response) => {
    response.end(
      role + event({ content: "Hi" }).replace('"model"', '"citations":["u"],"cost":1,"model"') + finish + done,
    );
  };
  const { truewire } = await setUp({ passExtra: ["citations"] }, script);
  const { text } = await ask(truewire, { stream: true });
  expect(text).toContain('"citations":["u"]');
  expect(text).not.toContain("cost");
});

test("its chat id is kept; one of another form, or so short that others have the same, is replaced", async () => {
  const answered = async (id: string): Promise<string> => {
    const { truewire } = await setUp({}, (response) => response.end(streamOf("Hello").replaceAll("chatcmpl-1", id)));
    return (await ask(truewire, { stream: true })).text;
  };
  const own = "chatcmpl-0d1ff47a1b0a4f0e9f3f";
  expect(await answered(own)).toContain(`"id":"${own}"`);
  // Ollama's chat ids are random numbers below 999, KoboldCpp's are all the same.
  for (const other of ["gen-0d1ff47a1b0a4f0e9f3f", "chatcmpl-17", "chatcmpl-A1"]) {
    const text = await answered(other);
    expect(text).not.toContain(other);
    expect(text).toMatch(/"id":"chatcmpl-\w{29}"/);
  }
});

test("embeddings are passed through, as numbers or base64", async () => {
  const { source, truewire } = await setUp({}, (response) => {
    const data = [
      { object: "embedding", index: 1, embedding: [0.5, -1] },
      { object: "embedding", index: 0, embedding: [0.25, 2] },
    ];
    response.end(JSON.stringify({ object: "list", data, model: "m", usage: { prompt_tokens: 4, total_tokens: 4 } }));
  });
  const embed = async (members: object): Promise<unknown> => {
    const response = await fetch(`${truewire.url}/v1/embeddings`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", input: ["a", "b"], ...members }),
    });
    return response.json();
  };
  expect(await embed({})).toMatchObject({
    data: [
      { index: 0, embedding: [0.25, 2] },
      { index: 1, embedding: [0.5, -1] },
    ],
    usage: { prompt_tokens: 4, total_tokens: 4 },
  });
  expect(await embed({ encoding_format: "base64" })).toMatchObject({ data: [{ embedding: "AACAPgAAAEA=" }, {}] });
  expect(source.requests[1]?.body).toEqual({ model: "m", input: ["a", "b"], encoding_format: "float" });
});

// Vectors of another length, or text that is no base64, came through: as an answer, and as an error of this server.
test.each<[string, unknown, object, string]>([
  ["that ignore `dimensions`", [0.5, -1, 0, 1], { dimensions: 2 }, "4 dimensions where 2 were requested"],
  ["in base64 that ignore `dimensions`", "AACAPgAAAEA=", { dimensions: 3 }, "2 dimensions where 3 were requested"],
  ["that are no base64", "%", {}, "neither a list of numbers nor base64"],
  ["that are cut", "AACAPgA=", {}, "neither a list of numbers nor base64"],
])("embeddings %s are an error of the upstream", async (_, embedding, members, message) => {
  const { truewire } = await setUp({}, (response) => {
    const data = [{ object: "embedding", index: 0, embedding }];
    response.end(JSON.stringify({ object: "list", data, model: "m", usage: { prompt_tokens: 4, total_tokens: 4 } }));
  });
  const response = await fetch(`${truewire.url}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", input: "a", ...members }),
  });
  expect([response.status, await response.json()]).toMatchObject([
    502,
    { error: { message: expect.stringContaining(message) } },
  ]);
});

test("legacy completions, streamed and not", async () => {
  const { source, truewire } = await setUp({}, (response, body) => {
    const chunk = (text: string, finish: string | null): string =>
      JSON.stringify({
        id: "cmpl-1",
        object: "text_completion",
        created: 1,
        model: "m",
        choices: [{ index: 0, text, logprobs: null, finish_reason: finish }],
      });
    if (body["stream"] === true)
      response.end(`data: ${chunk("Once", null)}\n\ndata: ${chunk(" more", "length")}\n\ndata: [DONE]\n\n`);
    else response.end(chunk("Once more", "length"));
  });
  const complete = async (stream: boolean): Promise<string> => {
    const response = await fetch(`${truewire.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", prompt: "Hi", max_tokens: 2, stream }),
    });
    return response.text();
  };
  const texts = (await complete(true)).split("\n\n").flatMap((line) => /"text":"([^"]*)"/.exec(line)?.[1] ?? []);
  expect(texts.join("")).toBe("Once more");
  expect(JSON.parse(await complete(false))).toMatchObject({
    choices: [{ text: "Once more", finish_reason: "length" }],
  });
  expect(source.requests.map(({ path }) => path)).toEqual(["/v1/completions", "/v1/completions"]);
});

test("an upstream that lists no models says what to do", async () => {
  const { port } = await listenInTest((_, response) => response.writeHead(404).end());
  await expect(startGateway(`http://127.0.0.1:${port}/v1`)).rejects.toThrow(/cannot be listed.*--model NAME.*"models"/);
  // Names of models do not help where the address is wrong.
  const https = startGateway(`https://127.0.0.1:${port}/v1`);
  await expect(https).rejects.toThrow(`speaks HTTP, not HTTPS. Use http:// in the URL: http://127.0.0.1:${port}/v1`);
  await expect(https).rejects.not.toThrow("--model NAME");
});

test("models are named on the command line, too", async () => {
  const source = await startScripted((response, body) => say(response, body, String(body["model"])));
  const truewire = await startTruewire([source.url, "--model", "a", "--model", "b", "--log-level", "silent"]);
  const response = await fetch(`${truewire.url}/v1/chat/completions`, chat("x", { model: "b" }));
  expect(await response.text()).toContain('"content":"b"');
  const list = (await (await fetch(`${truewire.url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(list.data.map(({ id }) => id)).toEqual(["a", "b"]);
  await truewire.stop();
  await source.close();
});
