import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders, RequestListener } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findServers } from "../../src/serve/cli/discovery.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { listenInTest } from "../support/close-after-test.ts";
import { freePort } from "../support/redis-server.ts";
import { until } from "../support/scripted-engine.ts";
import { startOllama } from "../doubles/ollama-api.ts";
import { runTruewire, servingWith, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { chat } from "../support/transports.ts";
import { bodyOf } from "../upstream/scripted-server.ts";

interface Double {
  readonly port: number;
  /** What was asked: `GET /v1/models`, with its headers and body. */
  readonly asked: { readonly line: string; readonly headers: IncomingHttpHeaders; readonly body: string }[];
}

async function double(answers: Readonly<Record<string, readonly [status: number, body: unknown]>>): Promise<Double> {
  const asked: Double["asked"] = [];
  const answer: RequestListener = (request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      const line = `${request.method} ${request.url}`;
      asked.push({ line, headers: request.headers, body });
      const [status, sent] = answers[line] ?? [404, "not found"];
      response.writeHead(status, { "content-type": typeof sent === "string" ? "text/html" : "application/json" });
      response.end(typeof sent === "string" ? sent : JSON.stringify(sent));
    });
  };
  const { port } = await listenInTest(answer);
  return { port, asked };
}

function list(owner: string, ...ids: string[]): readonly [number, object] {
  return [200, { object: "list", data: ids.map((id) => ({ id, object: "model", created: 1, owned_by: owner })) }];
}

const ollama = {
  "GET /v1/models": list("library", "qwen3:8b", "demo"),
  "GET /api/version": [200, { version: "0.9" }],
  "GET /api/tags": [200, { models: ["qwen3:8b", "demo"].map((name) => ({ name, model: name })) }],
};

/** `truewire serve` without targets that looks at these ports. It may take long, on a machine that is busy. */
async function start(
  ports: readonly number[],
  args: string[] = [],
  env: Readonly<Record<string, string>> = {},
  limitMs = 60_000,
): Promise<RunningTruewire> {
  const server = await startTruewire(["--threads", "1", "--gpu", "off", "--log-level", "warn", ...args], {
    cwd: await newFolder(),
    discovery: { ports, limitMs },
    env,
  });
  onTestFinished(async () => void (await server.stop()));
  return server;
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "truewire-discovery-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function namesOf({ url }: RunningTruewire): Promise<string[]> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

test("servers of this machine are served before the demo model; the start says which, and sends no key", async () => {
  const first = await double({
    ...(ollama as object),
    "POST /v1/chat/completions": [200, JSON.parse(bodyOf("from the double"))],
    "POST /api/chat": [
      200,
      {
        model: "qwen3:8b",
        message: { role: "assistant", content: "from the double" },
        done: true,
        done_reason: "stop",
      },
    ],
  });
  const second = await double({ "GET /v1/models": list("organization_owner", "gemma", "\u001b[31mred") });
  const server = await start([first.port, second.port], ["--key", "sk-mine"], { OPENAI_API_KEY: "sk-mine" });
  expect(await namesOf(server)).toEqual(["qwen3:8b", "ollama/demo", "gemma", "\u001b[31mred", "demo"]);
  const said = server.stdout();
  expect(said.split("\n")[0]).toContain(`${server.url} is the page`);
  expect(said).toContain(
    `  OpenAI:    ${server.url}/v1 (OPENAI_BASE_URL)\n  Anthropic: ${server.url} (ANTHROPIC_BASE_URL)\n`,
  );
  expect(said).toContain(`qwen3:8b, ollama/demo (Ollama, http://127.0.0.1:${first.port}/v1)`);
  expect(said).toContain(`gemma, ?[31mred (LM Studio, http://127.0.0.1:${second.port}/v1)`);
  expect(said).toContain("ollama/demo has this name because another model has its own.");
  // The demo model is there for when there are no others.
  expect(said.indexOf("qwen3:8b")).toBeLessThan(said.indexOf("demo (bundled; CPU: "));
  expect(said).toContain("No model was named, so this serves the models of this machine, and the bundled demo model");
  expect(said).toMatch(/^ {2}curl .*"model":"qwen3:8b"/m);
  const answer = await fetch(`${server.url}/v1/chat/completions`, chat("Hi", { model: "qwen3:8b" }));
  expect(await answer.text()).toContain("from the double");
  const asked = [...first.asked, ...second.asked];
  expect(JSON.stringify(asked)).not.toContain("sk-mine");
  const generating = asked.filter(({ body }) => body.includes('"Hi"'));
  expect(generating.map(({ line }) => line)).toEqual([
    expect.stringMatching(/^POST \/(?:v1\/chat\/completions|api\/chat)$/),
  ]);
});

test("what is no model server, wants a key, has no model or is a Truewire is not served, and does not stop the start", async () => {
  const page = await double({ "GET /v1/models": [200, "<html>"], "GET /": [200, "<html>"] });
  const other = await double({ "GET /v1/models": [200, { hello: "world" }] });
  const locked = await double({ "GET /v1/models": [401, { detail: "Please provide an API key" }] });
  const empty = await double({
    "GET /v1/models": [200, { object: "list", data: null }],
    "GET /api/version": [200, { version: "0.9" }],
  });
  const truewire = await start([]);
  const ports = [page.port, other.port, locked.port, empty.port, Number(new URL(truewire.url).port)];
  const server = await start(ports);
  expect(await namesOf(server)).toEqual(["demo"]);
  const said = server.stdout();
  expect(said).toContain(`wants a key: truewire serve http://127.0.0.1:${locked.port}/v1 --key KEY`);
  expect(said).toContain(`Ollama at http://127.0.0.1:${empty.port}/v1 has no models yet.`);
  expect(said).toContain(`Another Truewire is at ${truewire.url}/v1; its models are not served here.`);
  for (const { port } of [page, other]) expect(said).not.toContain(`:${port}`);
});

// On a busy machine an Ollama needs more than the 150 ms that the start waits, and four of six starts missed it for good. The doubles of the
// tests answered at once, or never.
test("a server that answers after the start is named at the start, and joins", async () => {
  let answer: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const { port } = await listenInTest((request, response) => {
    void released.then(() => {
      const [status, sent] = (ollama as unknown as Record<string, readonly [number, unknown]>)[
        `${request.method} ${request.url}`
      ] ?? [404, {}];
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(sent));
    });
  });
  const truewire = await start([port], [], {}, 300);
  expect(await namesOf(truewire)).toEqual(["demo"]);
  const url = `http://127.0.0.1:${port}/v1`;
  expect(truewire.stdout()).toContain(
    `A server at ${url} takes connections and has not answered yet; its models are taken in when it does.\n`,
  );
  answer();
  let names: string[] = [];
  await until(async () => (names = await namesOf(truewire)).length === 3, "the models are served");
  expect(names).toEqual(["qwen3:8b", "ollama/demo", "demo"]);
  const line = `Ollama at ${url} answers now, and its models are served: qwen3:8b, demo\n`;
  await until(() => truewire.stdout().includes(line), "the server says so");
});

test("a port that refuses connections is not waited for", async () => {
  const port = await freePort();
  // With the limit, the test would take an hour.
  expect(await findServers(3_600_000, [port])).toEqual({ found: [], late: [] });
});

test("a port that takes connections and never answers does not stop the start", async () => {
  const server = await start([(await listenInTest(createTcpServer())).port], [], {}, 300);
  expect(await namesOf(server)).toEqual(["demo"]);
});

test("a server that lists its models once and breaks then does not stop the start, and is asked again", async () => {
  let lists = 0;
  // Broken until the start is over: the server is asked again soon, which may be before the lines of the start are printed.
  let isStarting = true;
  const { port } = await listenInTest((request, response) => {
    if (request.url !== "/v1/models") return response.writeHead(404).end();
    lists++;
    if (lists > 1 && isStarting) return response.writeHead(400).end("{}");
    response.end(JSON.stringify(list("vllm", "large")[1]));
  });
  const truewire = await start([port]);
  isStarting = false;
  await until(async () => (await namesOf(truewire)).includes("large"), "it is taken in");
  expect(truewire.stdout()).toContain("vLLM at");
});

test("an Ollama is served over its own API", async () => {
  const upstream = await startOllama({ reply: () => "from Ollama" });
  onTestFinished(() => upstream.close());
  const server = await start([Number(new URL(upstream.url).port)]);
  const answer = await fetch(`${server.url}/v1/chat/completions`, chat("Hi", { model: "m:latest" }));
  expect(await answer.text()).toContain("from Ollama");
  expect(upstream.requests.map(({ path }) => path)).toEqual(["/api/chat"]);
});

test("a proxy of the environment is not used for this machine", async () => {
  const found = await double(ollama as never);
  const proxy = "http://127.0.0.1:9";
  const server = await start([found.port], [], {
    HTTP_PROXY: proxy,
    http_proxy: proxy,
    ALL_PROXY: proxy,
    NODE_USE_ENV_PROXY: "1",
  });
  expect(await namesOf(server)).toContain("qwen3:8b");
});

test.each([[["--no-discovery"]], [["--host", "0.0.0.0"]]])("%j: nothing is looked for", async (args) => {
  const found = await double(ollama as never);
  const server = await start([found.port], args);
  expect(await namesOf(server)).toEqual(["demo"]);
  expect(found.asked).toEqual([]);
});

test("where the default port is that of a server that was found, another one is used; a named port is not changed", async () => {
  const found = await double({ "GET /v1/models": list("llamacpp", "m.gguf") });
  const folder = await newFolder();
  const named = await runTruewire(["--port", String(found.port), "--threads", "1"], { cwd: folder });
  expect(named.stderr).toMatch(/is in use by another program/);
  const { spawn } = await import("node:child_process");
  // Without a port, as a user begins.
  const [node = "", ...args] = servingWith({ ports: [found.port], limitMs: 60_000, defaultPort: found.port });
  const child = spawn(node, args, { cwd: folder });
  onTestFinished(() => void child.kill());
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  await until(() => said.includes("curl"), "it serves");
  expect(said).toContain(`Port ${found.port} is in use by llama-server`);
  const [, port] = /^\S*http:\/\/127\.0\.0\.1:(\d+)/.exec(said) ?? [];
  expect(Number(port)).toBeGreaterThan(found.port);
  expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200);
});

test("a folder: each GGUF file is a model that its first request loads; projectors and further parts are none", async () => {
  const folder = await newFolder();
  const one = join(folder, "one.gguf");
  writeProgrammedModel(one);
  await mkdir(join(folder, "author/two"), { recursive: true });
  for (const name of ["mmproj-one.gguf", "big-00002-of-00002.gguf", "author/two/one.gguf", "two.gguf"])
    await copyFile(one, join(folder, name));
  await writeFile(join(folder, "notes.gguf"), "not a model");
  const server = await startTruewire([folder, "--threads", "1", "--gpu", "off"]);
  onTestFinished(async () => void (await server.stop()));
  expect(await namesOf(server)).toEqual(["author/two/one", "one", "two"]);
  const { models } = (await (await fetch(`${server.url}/admin/models`)).json()) as { models: { state: string }[] };
  expect(models.map(({ state }) => state)).toEqual(["unloaded", "unloaded", "unloaded"]);
  const answer = await fetch(`${server.url}/v1/chat/completions`, chat("#plain", { model: "two" }));
  expect(await answer.text()).toContain("quick brown fox");

  const file = join(await newFolder(), "truewire.yaml");
  await writeFile(file, `port: 0\nmodels: [${folder}]\n`);
  const configured = await startTruewire(["--config", file]);
  onTestFinished(async () => void (await configured.stop()));
  expect(await namesOf(configured)).toEqual(["author/two/one", "one", "two"]);

  const { code, stderr } = await runTruewire(["serve", await newFolder(), "--port", "0"]);
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^truewire: The folder .* has no model: expected GGUF files/),
  ]);
});
