import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createServer as createTruewire } from "../../src/serve/app/create-server.ts";
import type { DoctorFinding, DoctorReport } from "../../src/serve/cli/doctor-report.ts";
import { examineServer } from "../../src/serve/cli/doctor-server.ts";
import { readConfigFile } from "../../src/serve/config/read-config-file.ts";
import { runTruewire } from "../support/serve.ts";
import { say } from "../upstream/scripted-server.ts";
import { deepseek } from "../doubles/deepseek.ts";
import { groq } from "../doubles/groq.ts";
import { mistral } from "../doubles/mistral.ts";
import { ollama } from "../doubles/ollama.ts";
import { hasTemplate, qwen } from "../doubles/qwen.ts";
import { listOf, startChat, type Json, type Turn } from "../doubles/chat-server.ts";
import { vllm } from "../doubles/vllm.ts";
import { listen } from "../support/listen.ts";

// `truewire doctor URL` against doubles of servers on real sockets: what it finds, what it says it did not reach, and its exit code.

type Answer = (body: Record<string, unknown>, response: ServerResponse, request: IncomingMessage) => void;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

interface Double {
  /** Without `/v1`. */
  readonly url: string;
  readonly requests: readonly IncomingMessage[];
}

/** A server of these paths; every other is 404. A function answers, anything else is sent as JSON. */
async function start(paths: Readonly<Record<string, unknown>>): Promise<Double> {
  const requests: IncomingMessage[] = [];
  const { url, close } = await listen((request, response) => {
    requests.push(request);
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      const found = paths[request.url ?? ""];
      if (found === undefined) response.writeHead(404).end('{"error":{"message":"not found"}}');
      else if (typeof found !== "function") response.end(JSON.stringify(found));
      else {
        const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
        if (request.method === "GET" || body["messages"] !== undefined)
          return (found as Answer)(body, response, request);
        const error = { message: "Missing: messages", type: "invalid_request_error", param: "messages", code: null };
        response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
      }
    });
  });
  closing.push(close);
  return { url, requests };
}

const list = (owner: string, more: object = {}, id = "m"): object => ({
  object: "list",
  data: [{ id, object: "model", created: 1_760_000_000, owned_by: owner, ...more }],
});

/** The number of words of a request's messages, for which a double counts as many tokens. */
function wordsOf(body: Record<string, unknown>): number {
  return JSON.stringify(body["messages"]).split(" ").length;
}

/** Answers as a good server: calls a tool, follows a schema, counts tokens by `counted`. */
function answerWell(counted: (words: number) => number, cached?: (words: number) => number): Answer {
  return (body, response) => {
    const count = wordsOf(body);
    const usage = {
      prompt_tokens: counted(count),
      completion_tokens: 1,
      total_tokens: counted(count) + 1,
      ...(cached && { prompt_tokens_details: { cached_tokens: cached(count) } }),
    };
    const envelope = { id: "chatcmpl-1", created: 1_760_000_000, model: "m" };
    const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Paris"}' } };
    const content = body["response_format"] ? '{"name":"Ada","age":36}' : "Hello.";
    const finish = body["tools"] ? "tool_calls" : "stop";
    if (body["stream"] !== true) {
      const message = body["tools"]
        ? { role: "assistant", content: null, tool_calls: [call] }
        : { role: "assistant", content };
      const choices = [{ index: 0, message, logprobs: null, finish_reason: finish }];
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...envelope, object: "chat.completion", choices, usage }));
      return;
    }
    const chunk = (members: object): string =>
      `data: ${JSON.stringify({ ...envelope, object: "chat.completion.chunk", ...members })}\n\n`;
    const delta = body["tools"] ? { tool_calls: [{ index: 0, ...call }] } : { content };
    response
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(
        [
          chunk({ choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] }),
          chunk({ choices: [{ index: 0, delta, finish_reason: null }] }),
          chunk({ choices: [{ index: 0, delta: {}, finish_reason: finish }] }),
          ...(body["stream_options"] ? [chunk({ choices: [], usage })] : []),
          "data: [DONE]\n\n",
        ].join(""),
      );
  };
}

const plenty = 60_000;

function of(report: DoctorReport, id: string): DoctorFinding {
  const found = report.findings.find((finding) => finding.id === id);
  if (!found) throw new Error(`There is no finding ${id}: ${report.findings.map((one) => one.id).join(", ")}`);
  return found;
}

describe("a server that answers", () => {
  // A LiteLLM was called OpenAI, by the owner of its models, which many servers set.
  test.each([
    ["the owner that OpenAI's models have", {}, "a server that is not known by name (127.0.0.1"],
    ["the time that LiteLLM gives each model", { created: 1_677_610_602 }, "LiteLLM"],
  ])("a server on this machine whose list has %s is no OpenAI", async (_, more, name) => {
    const { url } = await start({
      "/v1/models": list("openai", more),
      "/v1/chat/completions": answerWell((words) => words),
    });
    expect(of(await examineServer({ url, budget: plenty }), "server").text).toContain(name);
  });

  // It was not recognised, although its list of models and its own API say what it is.
  test("OGX, by the owner of its models, with its version and the one that was tested", async () => {
    const { url } = await start({
      "/v1/version": { version: "1.6.0" },
      "/v1/models": list("ogx"),
      "/v1/chat/completions": answerWell((words) => words),
    });
    expect(of(await examineServer({ url, budget: plenty }), "server").text).toBe(
      `OGX 1.6.0 answers at ${url}/v1; tested: 1.5.0 (docs/compatibility.md)`,
    );
  });

  // All three were not recognised.
  test.each([
    [
      "Portkey, by its headers",
      {
        "/v1/models": (_: unknown, response: ServerResponse) =>
          void response.setHeader("x-portkey-provider", "openai").end(JSON.stringify(list("library"))),
      },
      (url: string) => `Ollama answers at ${url}/v1 through Portkey; tested: Portkey 1.15.2 (docs/compatibility.md)`,
    ],
    [
      "m serve, which lists no models, by its health",
      { "/health": { status: "pass" } },
      (url: string) => `mellea m serve answers at ${url}/v1; tested: 0.8.0 (docs/compatibility.md)`,
    ],
    [
      "Transformers, by the owner and the time of a model",
      { "/v1/models": { data: [{ id: "a/m", created: 1.5, owned_by: "a" }] } },
      (url: string) => `Transformers serve answers at ${url}/v1; tested: 5.19.0 (docs/compatibility.md)`,
    ],
  ])("%s", async (_, paths, text) => {
    const { url } = await start({ "/v1/chat/completions": answerWell((words) => words), ...paths });
    const report = await examineServer({ url: `${url}/v1`, model: "a/m", budget: plenty });
    expect(of(report, "server").text).toBe(text(url));
  });

  test("Ollama that cuts prompts silently: half of the context is left, and the cure is its variable", async () => {
    const { url } = await start({
      "/v1/models": list("library"),
      "/api/version": { version: "0.33.3" },
      "/api/ps": { models: [{ name: "m:latest", context_length: 4096 }] },
      "/v1/chat/completions": answerWell((words) => (words > 4096 ? 4096 / 2 + 2 : words)),
    });
    const report = await examineServer({ url, budget: plenty });
    expect(report).toMatchObject({ subject: `${url}/v1`, model: "m", examined: true });
    expect(of(report, "server").text).toBe(
      `Ollama 0.33.3 answers at ${url}/v1; tested: 0.17.4 (docs/compatibility.md)`,
    );
    // The setting alone was the cure, and Ollama has no more tokens than the model was trained for.
    expect(of(report, "context")).toMatchObject({
      status: "problem",
      cure: "OLLAMA_CONTEXT_LENGTH=32768 ollama serve (a model that was trained for fewer tokens stays too small)",
    });
    expect(of(report, "cut")).toMatchObject({
      status: "problem",
      text: expect.stringMatching(/it cuts prompts without an error: of 4,\d{3} tokens, it read 2,050 tokens/),
      cure: "OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
    });
    expect(["tools", "usage", "schema", "system"].map((id) => of(report, id).status)).toEqual(["ok", "ok", "ok", "ok"]);
    expect(of(report, "cache")).toMatchObject({ status: "unknown", text: expect.stringContaining("does not report") });
    expect(of(report, "apis").text).toContain("Responses (Codex needs it), Messages (Claude Code needs it)");
  });

  test("one that refuses prompts that do not fit, and whose cache works", async () => {
    const well = answerWell(
      (words) => words,
      (words) => words - 1,
    );
    const { url } = await start({
      "/props": { build_info: "b9000", default_generation_settings: { n_ctx: 8192 } },
      "/v1/models": list("llamacpp", { meta: { n_ctx_train: 131_072 } }),
      "/v1/chat/completions": ((body, response, request) => {
        if (wordsOf(body) <= 8192) return well(body, response, request);
        const message = "the request exceeds the available context size";
        response
          .writeHead(400)
          .end(JSON.stringify({ error: { code: 400, message, type: "exceed_context_size_error" } }));
      }) satisfies Answer,
    });
    const report = await examineServer({ url: `${url}/v1/`, budget: plenty });
    expect(of(report, "server").text).toBe(
      `llama-server b9000 answers at ${url}/v1; tested: 2026.10.11549 (docs/compatibility.md)`,
    );
    expect(of(report, "context").text).toContain("8,192 tokens");
    expect(of(report, "context").cure).toContain("-c 32768");
    expect(of(report, "cut")).toEqual({ id: "cut", status: "ok", text: "it refuses prompts that do not fit" });
    expect(of(report, "cache")).toMatchObject({ status: "ok", text: "its cache works: 299 of 300 tokens were cached" });
  });

  test("a cache that does not work is a problem where the server's setting is known", async () => {
    const { url } = await start({
      "/v1/models": list("vllm", { max_model_len: 32_768 }),
      "/v1/chat/completions": answerWell(
        (words) => words,
        () => 0,
      ),
    });
    const report = await examineServer({ url, budget: plenty });
    expect(of(report, "cache")).toMatchObject({ status: "problem", cure: "start vLLM with --enable-prefix-caching" });
    // A long context is not filled.
    expect(of(report, "cut")).toMatchObject({ status: "unknown", text: expect.stringContaining("32,768 tokens") });
  });

  test("vLLM without a parser of calls: its own words, and the flags that cure it", async () => {
    const message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set';
    const middle = "System message must be at the beginning.";
    const refused = (text: string) => ({ status: 400, body: { error: { message: text, type: "BadRequestError" } } });
    const server = await startChat(
      {
        ...vllm,
        refusal(body: Json) {
          if (body["tools"] !== undefined) return refused(message);
          const roles = listOf(body["messages"]).map(({ role }) => role);
          return roles.lastIndexOf("system") > 0 ? refused(middle) : vllm.refusal(body);
        },
      },
      "Hello.",
    );
    closing.push(() => server.close());
    const report = await examineServer({ url: server.url, budget: plenty });
    expect(of(report, "tools").status).toBe("problem");
    expect(of(report, "tools").text).toContain(message);
    expect(of(report, "tools").cure).toContain("--enable-auto-tool-choice --tool-call-parser");
    expect(of(report, "system")).toMatchObject({ status: "problem", cure: `truewire serve ${server.url}` });
    expect(of(report, "system").text).toContain(middle);
    // It accepts the schema and says "Hello.".
    expect(of(report, "schema")).toMatchObject({ status: "problem", text: "it accepts a JSON schema and ignores it" });
  });

  test("a call that stays in the text, and one that is not seen", async () => {
    const text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>';
    const server = await startChat(ollama(), (body) => (body["tools"] ? text : "Hello."));
    closing.push(() => server.close());
    const found = of(await examineServer({ url: server.url, budget: plenty }), "tools");
    expect(found).toMatchObject({ status: "problem", text: "the model's call of a tool stays in the text" });
    expect(found.cure).toContain(`truewire serve ${server.url} --tool-format auto`);
    const silent = await startChat(ollama(), "Hello.");
    closing.push(() => silent.close());
    expect(of(await examineServer({ url: silent.url, budget: plenty }), "tools").status).toBe("unknown");
  });

  // `--tool-format auto`, which was the cure, finds calls by their markers, and left this one in the text.
  test("a call that stays in the text without markers: the format that reads it", async () => {
    const text = '{"name": "get_weather", "arguments": {"city": "Paris"}}';
    const server = await startChat(ollama(), (body) => (body["tools"] ? text : "Hello."));
    closing.push(() => server.close());
    const found = of(await examineServer({ url: server.url, budget: plenty }), "tools");
    expect(found.cure).toContain(`truewire serve ${server.url} --tool-format json`);
  });

  // `truewire serve` refused the command of each cure: the server lists no models, so one has to be named.
  test("cures for a server without a list of models name the model", async () => {
    const { url } = await start({
      "/v1/chat/completions": answerWell((words) => words),
      "/health": { status: "pass" },
    });
    const report = await examineServer({ url: `${url}/v1`, model: "my model", budget: plenty });
    expect(of(report, "apis").cure).toBe(`truewire serve ${url}/v1 --model 'my model'`);
  });

  // Its default is 2,048 tokens, and it says nowhere how many it has.
  test("llama-cpp-python, which does not say how large its context is: the setting", async () => {
    const { url } = await start({
      "/v1/models": { object: "list", data: [{ id: "m", object: "model", owned_by: "me", permissions: [] }] },
      "/v1/chat/completions": answerWell((words) => words),
    });
    const report = await examineServer({ url, budget: plenty });
    expect(of(report, "server").text).toContain("llama-cpp-python answers at");
    expect(of(report, "context")).toMatchObject({ status: "unknown", cure: expect.stringContaining("--n_ctx 32768") });
  });

  test("the three worst findings of the checker, in words", async () => {
    // No usage, no [DONE], a choice without index: many rules are broken.
    const { url } = await start({
      "/v1/models": list("somebody"),
      "/v1/chat/completions": ((body, response) => {
        if (body["stream"] !== true) return response.end('{"choices":[{"message":{"content":"Hi"}}]}');
        return response
          .writeHead(200, { "content-type": "text/event-stream" })
          .end('data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n');
      }) satisfies Answer,
    });
    const report = await examineServer({ url, budget: plenty });
    const rules = report.findings.filter(({ id }) => id.includes("/"));
    expect(rules).toHaveLength(3);
    for (const { status, text, cure } of rules) {
      expect(status).toBe("problem");
      expect(text).toMatch(/^[a-z ]+: \S/);
      expect(cure).toContain(`truewire serve ${url}/v1`);
    }
    expect(rules[2]?.cure).toContain(`more: truewire check ${url}/v1`);
    expect(of(report, "usage")).toMatchObject({ status: "problem", text: "streams report no usage" });
  });

  // Once, the rule of streams and that of bodies were two of the three findings, in the same words.
  test("a mistake that streams and bodies have is one finding", async () => {
    const well = answerWell((words) => words);
    const { url } = await start({
      "/v1/models": list("somebody"),
      "/v1/chat/completions": ((body, response, request) => {
        const end = response.end.bind(response) as (text: string) => ServerResponse;
        response.end = ((text: string) => end(text.replace(/"total_tokens":\d+/g, '"total_tokens":0'))) as never;
        return well(body, response, request);
      }) satisfies Answer,
    });
    const { findings } = await examineServer({ url, budget: plenty });
    const rules = findings.filter(({ text }) => text.includes("total_tokens is the sum"));
    expect(rules.map(({ status }) => status)).toEqual(["problem"]);
  });

  test("one that refuses everything is asked no more than once", async () => {
    const { url, requests } = await start({
      "/v1/models": list("somebody"),
      "/v1/chat/completions": ((_, response) => response.writeHead(500).end("out of memory")) satisfies Answer,
    });
    const report = await examineServer({ url, budget: plenty });
    expect(of(report, "answer")).toMatchObject({ status: "problem", text: expect.stringContaining("out of memory") });
    expect(
      requests.filter(({ method, url: path }) => method === "POST" && path === "/v1/chat/completions"),
    ).toHaveLength(1);
  });

  test("a gateway that passes another server's list on is named as a gateway", async () => {
    const { url } = await start({
      "/v1/models": list("library"),
      "/v1/chat/completions": answerWell((words) => words),
    });
    const report = await examineServer({ url, budget: plenty });
    expect(of(report, "server").text).toBe(`Ollama answers at ${url}/v1 through a gateway: its own API is not there`);
  });

  test("an answer with status 200 that is no chat completion", async () => {
    const { url } = await start({ "/v1/models": list("somebody"), "/v1/chat/completions": { ok: true } });
    const report = await examineServer({ url, budget: plenty });
    expect(of(report, "answer")).toMatchObject({
      status: "problem",
      text: "it does not answer a short question: its answer is no chat completion",
    });
  });

  // Once, doctor named `truewire serve` as the cure of rules that only the model's server can keep.
  test.each([ollama(), vllm, deepseek, mistral, ...(hasTemplate ? [qwen()] : [])])(
    "$name: what `truewire serve URL` is said to cure is no problem behind it",
    async (strict) => {
      const turn = (body: Json): Turn =>
        listOf(body["tools"]).length > 0 ? { calls: [{ name: "get_weather", input: { city: "Paris" } }] } : "Hello.";
      const server = await startChat(strict, turn);
      closing.push(() => server.close());
      const truewire = await createTruewire({
        port: 0,
        logLevel: "silent",
        models: [{ kind: "upstream", url: server.url }],
      });
      closing.push(() => truewire.close(0));
      const before = await examineServer({ url: server.url, budget: plenty });
      const behind = await examineServer({ url: truewire.url, budget: plenty });
      expect(of(behind, "server").text).toContain("Truewire");
      const cured = before.findings.filter(({ cure }) => cure?.startsWith(`truewire serve ${server.url}`));
      expect(cured.map(({ id }) => id)).toContain("apis");
      for (const { id } of cured) {
        const left = behind.findings.filter((finding) => finding.id === id && finding.cure !== undefined);
        expect(left).toEqual([]);
      }
    },
  );

  test("what it refuses of what some servers refuse", async () => {
    const server = await startChat({ ...groq, owner: "me" }, "Hello.");
    closing.push(() => server.close());
    const found = of(await examineServer({ url: server.url, budget: plenty }), "accepts");
    expect(found).toMatchObject({ status: "ok", text: expect.stringMatching(/^it refuses: .*a message with a name/) });
    expect(found.cure).toBe(`truewire serve ${server.url} adapts requests to it where that is possible`);
    const { url } = await start({ "/v1/models": list("me"), "/v1/chat/completions": answerWell((words) => words) });
    expect(of(await examineServer({ url, budget: plenty }), "accepts")).toEqual({
      id: "accepts",
      status: "ok",
      text: expect.stringMatching(/^it accepts 21 kinds of requests that some servers refuse$/),
    });
  });

  test("what its refusals show becomes a profile, by their words or by what was asked", async () => {
    const named = await startChat({ ...groq, owner: "me" }, "Hello.");
    closing.push(() => named.close());
    expect((await examineServer({ url: named.url, budget: plenty })).profile).toEqual({
      reasoningHistory: false,
      dropInMessages: ["name"],
      severalChoices: false,
      logprobs: false,
    });
    const silent = await startChat(
      {
        refusal: ({ tools, response_format: format, messages }) =>
          tools !== undefined || format !== undefined || listOf(messages).some(({ content }) => Array.isArray(content))
            ? { status: 422, body: { detail: "no" } }
            : undefined,
      },
      "Hello.",
    );
    closing.push(() => silent.close());
    const report = await examineServer({ url: silent.url, budget: plenty });
    expect(report.profile).toEqual({ tools: false, outputFormats: [], images: false, files: false });
    // Known servers are adapted to already.
    const known = await startChat(mistral, "Hello.");
    closing.push(() => known.close());
    expect((await examineServer({ url: known.url, budget: plenty })).profile).not.toHaveProperty("callIds");
  });

  test("a rate limit shows nothing of what it refuses", async () => {
    const well = answerWell((words) => words);
    const { url } = await start({
      "/v1/models": list("me"),
      "/v1/chat/completions": ((body, response, request) => {
        const isProbe = JSON.stringify(body["messages"]).includes("Say hi.");
        if (!isProbe) return well(body, response, request);
        return response.writeHead(429).end('{"error":{"message":"Rate limit reached"}}');
      }) satisfies Answer,
    });
    expect(of(await examineServer({ url, budget: plenty }), "accepts")).toMatchObject({ status: "unknown" });
  });

  test("without a model", async () => {
    const { url } = await start({
      "/v1/models": { object: "list", data: null },
      "/api/version": { version: "0.33.3" },
    });
    const report = await examineServer({ url, budget: plenty });
    expect(of(report, "model")).toEqual({
      id: "model",
      status: "problem",
      text: "it lists no model",
      cure: "ollama pull MODEL",
    });
  });

  test("members of other types than expected break nothing", async () => {
    const hostile = { toString: null, __proto__: null };
    const { url } = await start({
      "/v1/models": list("library"),
      "/api/version": { version: hostile },
      "/api/ps": { models: [hostile, null, { name: "m", context_length: hostile }] },
      "/v1/chat/completions": ((_, response) =>
        response.end(
          JSON.stringify({
            choices: [{ message: { content: hostile, tool_calls: hostile } }],
            usage: { prompt_tokens: hostile },
          }),
        )) satisfies Answer,
    });
    const report = await examineServer({ url, budget: plenty });
    expect(report.examined).toBe(true);
    expect(of(report, "context").status).toBe("unknown");
  });
});

describe("the time is over", () => {
  test("in the middle: what was seen is reported, and what was not is named", async () => {
    const well = answerWell((words) => words);
    const over = new AbortController();
    const { url } = await start({
      "/v1/models": list("somebody", { context_length: 65_536 }),
      "/v1/chat/completions": ((body, response, request) => {
        if (body["tools"] === undefined) well(body, response, request);
        else over.abort();
      }) satisfies Answer,
    });
    const report = await examineServer({ url, budget: plenty, signal: over.signal });
    expect(of(report, "answer").status).toBe("ok");
    expect(of(report, "context").status).toBe("ok");
    expect(of(report, "tools")).toEqual({
      id: "tools",
      status: "unknown",
      text: "tools: not reached within 60 s",
      cure: "run it with --timeout 360",
    });
    expect(of(report, "cut")).toEqual({
      id: "cut",
      status: "unknown",
      text: "a prompt that does not fit: not reached within 60 s",
    });
    // The short ones come first.
    expect(["system", "usage"].map((id) => of(report, id).status)).toEqual(["ok", "ok"]);
    expect(report.findings.filter(({ status }) => status === "problem")).toEqual([]);
  });

  test("before the first answer: nothing is a problem, and the model may be loading", async () => {
    const over = new AbortController();
    const { url } = await start({
      "/v1/models": list("somebody"),
      "/v1/chat/completions": (() => over.abort()) satisfies Answer,
    });
    const report = await examineServer({ url, budget: plenty, signal: over.signal });
    expect(of(report, "answer")).toMatchObject({ status: "unknown", cure: expect.stringContaining("--timeout 360") });
    expect(of(report, "rules")).toMatchObject({ status: "unknown", text: expect.stringContaining("not reached") });
    expect(report.findings.filter(({ status }) => status === "problem")).toEqual([]);
  });

  test("before the list of models: there was nothing to examine", async () => {
    const { url } = await start({ "/v1/models": () => {}, "/models": () => {} });
    const report = await examineServer({ url, budget: 200 });
    expect(report).toMatchObject({ examined: false, findings: [{ id: "server", status: "problem" }] });
    expect(of(report, "server").text).toContain("no answer within 0.2 s");
  });
});

describe("the key", () => {
  test("goes to the server of the URL only, also where it redirects to another", async () => {
    const other = await start({ "/v1/models": list("somebody") });
    const { url, requests } = await start({
      "/v1/models": ((_, response) =>
        response.writeHead(302, { location: `${other.url}/v1/models` }).end()) satisfies Answer,
    });
    const report = await examineServer({ url: `${url}/v1`, key: "sk-secret", budget: plenty });
    expect(report.examined).toBe(false);
    expect(requests[0]?.headers.authorization).toBe("Bearer sk-secret");
    expect(other.requests).toEqual([]);
    expect(JSON.stringify(report)).not.toContain("sk-secret");
  });

  test("is missing", async () => {
    const { url } = await start({
      "/v1/models": ((_, response) => response.writeHead(401).end("{}")) satisfies Answer,
    });
    const report = await examineServer({ url, budget: plenty });
    expect(of(report, "server")).toMatchObject({ text: `${url}/v1 asks for a key, or for another one` });
    expect(of(report, "server").cure).toContain("--key");
  });
});

describe("the command", () => {
  const doctor = (...args: string[]): ReturnType<typeof runTruewire> => runTruewire(["doctor", ...args]);

  test("no server: 2", async () => {
    const { url } = await start({});
    await Promise.all(closing.splice(0).map((close) => close()));
    const { code, stdout } = await doctor(url);
    expect(stdout).toContain(`no server answers at ${url}`);
    expect(stdout).toContain("→ start the server");
    expect(code).toBe(2);
  });

  test("a web server that is no API: 2", async () => {
    const page: Answer = (_, response) => response.end("<html>Hello</html>");
    const { url } = await start({ "/models": page, "/v1/models": page });
    const { code, stdout } = await doctor(url);
    expect(stdout).toContain("is no API: /models has a web page (status 200)");
    expect(code).toBe(2);
  });

  test("HTTPS at a port of HTTP: 2, in words", async () => {
    const { url } = await start({});
    const { code, stdout } = await doctor(url.replace("http:", "https:"));
    expect(stdout).toContain("it speaks HTTP, not HTTPS: use http:// in the URL");
    expect(code).toBe(2);
  });

  test("problems: 1, each with its cure; a server's control characters do not reach the terminal", async () => {
    const { url } = await start({
      "/v1/models": list("vllm", { max_model_len: 2048 }, "m\u001B[2Jm"),
      "/v1/chat/completions": ((_, response) => say(response, {}, "\u001B]0;hi\u0007")) satisfies Answer,
    });
    const { code, stdout, stderr } = await doctor(url.slice("http://".length));
    // On a machine that is busy it may wait.
    expect(stderr.replace(/^truewire: waiting for .*\n/gm, "")).toBe("");
    expect(stdout).toContain("problem  its context is 2,048 tokens");
    expect(stdout).toContain("→ start vLLM with --max-model-len 32768");
    expect([...stdout].filter((char) => char < " " && char !== "\n")).toEqual([]);
    expect(code).toBe(1);
  });

  test("no problems: 0, as JSON", async () => {
    const { url } = await start({
      "/v1/models": list("vllm", { max_model_len: 65_536 }),
      "/v1/chat/completions": answerWell(
        (words) => words,
        (words) => words - 1,
      ),
    });
    const { code, stdout } = await doctor(url, "--json", "--timeout", "60");
    const report = JSON.parse(stdout) as DoctorReport;
    expect(report.findings.filter(({ status }) => status === "problem")).toEqual([]);
    expect(report).toMatchObject({ subject: `${url}/v1`, model: "m", examined: true });
    expect(code).toBe(0);
  });

  test("its profile is printed, or written into a configuration whose other lines stay", async () => {
    const server = await startChat({ ...groq, owner: "me" }, "Hello.");
    closing.push(() => server.close());
    const printed = (await doctor(server.url, "--timeout", "60")).stdout;
    const entry = `models:\n  - kind: upstream\n    url: ${server.url}\n    requests:\n      reasoningHistory: false\n`;
    expect(printed).toContain(entry);
    const folder = await mkdtemp(join(tmpdir(), "truewire-doctor-"));
    closing.push(() => rm(folder, { recursive: true }));
    const file = join(folder, "truewire.yaml");
    const written = async (before?: string): Promise<string> => {
      if (before !== undefined) await writeFile(file, before);
      const { stdout } = await doctor(server.url, "--timeout", "60", "--write", file);
      expect(stdout).toContain(`${file} has what the server refuses.`);
      await readConfigFile(file, { KEY: "k" });
      return readFile(file, "utf8");
    };
    expect(printed).toContain(await written());
    expect(
      await written(
        `# mine\nmodels:\n  - kind: upstream\n    url: ${server.url}/ # here\n    key: \${KEY}\n    requests: { logprobs: true }\n`,
      ),
    ).toBe(
      `# mine\nmodels:\n  - kind: upstream\n    url: ${server.url}/ # here\n    key: \${KEY}\n    requests: { logprobs: true, reasoningHistory: false, dropInMessages: [ name ], severalChoices: false }\n`,
    );
    expect(parse(await written(`port: 1 # one\nmodels: [up=${server.url}]\n`))).toMatchObject({
      port: 1,
      models: [{ kind: "upstream", name: "up", url: server.url, requests: { severalChoices: false } }],
    });
    expect(parse(await written("models: [http://localhost:1/v1]\n"))).toMatchObject({
      models: ["http://localhost:1/v1", { url: server.url, requests: { severalChoices: false } }],
    });
    await writeFile(file, "models: all\n");
    const refused = await doctor(server.url, "--timeout", "60", "--write", file);
    expect(refused.stderr).toContain("is not a configuration: expected a mapping with a list of models");
    expect(refused.code).toBe(2);
    expect(await readFile(file, "utf8")).toBe("models: all\n");
  });

  test.each([
    [["ftp://localhost/v1"], "is not the URL of a server"],
    [["http://me:secret@localhost:1/v1"], "must not contain a password or a query"],
    [["localhost:1/v1?a=b"], "must not contain a password or a query"],
    [["localhost:1", "--timeout", "soon"], "--timeout must be a number of seconds"],
  ])("a mistake, %j: 2", async (args, message) => {
    const { code, stderr } = await doctor(...args);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("secret");
    expect(code).toBe(2);
  });

  test("without a URL it looks at this machine, and loads the libraries in a process of its own", async () => {
    const { code, stdout } = await runTruewire(["doctor", "--json"], {
      env: { HTTP_PROXY: "http://me:secret@proxy.example:3128", NO_PROXY: "", no_proxy: "", NODE_OPTIONS: "" },
    });
    const report = JSON.parse(stdout) as DoctorReport;
    expect(of(report, "node").status).toBe("ok");
    expect(of(report, "libraries").text).toMatch(/^llama\.cpp .* loads|not installed/);
    expect(of(report, "proxy").text).toContain("HTTP_PROXY is set (proxy.example:3128)");
    expect(stdout).not.toContain("secret");
    expect(code).toBe(1);
  });
});

// Servers that were written for tests ended at a request without `messages`, and everything that followed was reported as "not reached" or
// as what the server lacks. The doubles of the tests survived every request.
describe("a server that ends at a request", () => {
  /** Ends, as a process does, when `isLast` is true of a request. */
  async function fragile(isLast: (body: Record<string, unknown>, url: string) => boolean) {
    const seen: { readonly line: string; readonly body: string }[] = [];
    const answer = answerWell((words) => words);
    const server = createServer((request, response) => {
      let text = "";
      request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      request.on("end", () => {
        seen.push({ line: `${request.method} ${request.url}`, body: text });
        if (request.url === "/v1/models") return void response.end(JSON.stringify(list("me")));
        if (request.method === "GET") return void response.writeHead(404).end();
        const body = JSON.parse(text) as Record<string, unknown>;
        if (!isLast(body, request.url ?? ""))
          return request.url === "/v1/chat/completions"
            ? answer(body, response, request)
            : void response.writeHead(404).end();
        server.close();
        server.closeAllConnections();
      });
    });
    const { url, close } = await listen(server);
    closing.push(close);
    return { url, seen };
  }

  test.each<[string, (body: Record<string, unknown>, url: string) => boolean, string]>([
    ["with tools", (body) => body["tools"] !== undefined, "tool"],
    ["of Responses", (_, url) => url === "/v1/responses", "Responses"],
    ["in the first one", () => true, "POST /chat/completions"],
  ])("%s: it says after which, and examines no further", async (_, isLast, about) => {
    const { url } = await fragile(isLast);
    const report = await examineServer({ url, budget: plenty });
    const stopped = of(report, "stopped");
    expect(stopped).toMatchObject({ status: "problem", cure: expect.stringContaining("start it again") });
    expect(stopped.text).toMatch(/^the server stopped after this request: /);
    expect(stopped.text).toContain(about);
    expect(report.findings.at(-1)).toBe(stopped);
    const { code, stdout } = await runTruewire(["doctor", (await fragile(isLast)).url]);
    expect(stdout).toContain("problem  the server stopped after this request: ");
    expect(code).toBe(1);
  });

  test("doctor asks nothing that no client asks: each request of chat has messages, each of Responses an input", async () => {
    const { url, seen } = await fragile(() => false);
    await examineServer({ url, budget: plenty });
    const posts = seen.filter(({ line }) => line.startsWith("POST"));
    expect(posts.length).toBeGreaterThan(20);
    for (const { line, body } of posts) {
      const { messages, input, model } = JSON.parse(body);
      expect(model).toBeTypeOf("string");
      if (line === "POST /v1/responses") expect(input).toBeTypeOf("string");
      else expect(messages.length, line).toBeGreaterThan(0);
    }
  });
});

test("while a server hangs, lines say what is waited for, and how long", async () => {
  const { url } = await start({
    "/v1/models": list("vllm"),
    "/v1/chat/completions": (() => {}) satisfies Answer,
  });
  const { code, stderr, stdout } = await runTruewire(["doctor", url, "--timeout", "7"]);
  expect(stderr).toMatch(/^truewire: waiting for a short answer \(\d+ s\)$/m);
  expect(stdout).toContain("not reached within 7 s");
  expect(code).toBe(0);
});
