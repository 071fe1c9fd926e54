import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHandler } from "../../src/server.ts";
import { builtMain, runTruewire } from "../support/serve.ts";
import { listen, type Listening } from "../support/listen.ts";
import { answer, ScriptedEngine } from "../support/scripted-engine.ts";
import { logprobExchange } from "./legal/logprobs.ts";

// The command itself: what it prints where, and its exit code. 0: no errors; 1: errors; 2: it could not be checked.

const folder = mkdtempSync(join(tmpdir(), "truewire-command-"));
const good = join(folder, "good.sse");
const broken = join(folder, "broken.sse");
const warned = join(folder, "warned.sse");
const request = join(folder, "request.json");

/** Answers `/v1/…` as Truewire does, `/html/…` as a proxy whose server is gone, and `/closed/…` only with a key. */
let server: Listening;
let url: string;

beforeAll(async () => {
  const { request: asked, response } = logprobExchange(-1, "lean", true);
  writeFileSync(good, response.body);
  writeFileSync(broken, response.body.replace("data: [DONE]\n\n", ""));
  writeFileSync(warned, response.body.replaceAll("data: {", "event: chunk\ndata: {"));
  writeFileSync(request, JSON.stringify(asked.body));
  const handler = createHandler({
    models: [{ kind: "engine", engine: new ScriptedEngine(() => answer(["Hello", "."])) }],
  });
  server = await listen((incoming, outgoing) => {
    const path = incoming.url ?? "";
    if (path.startsWith("/v1/")) return handler(incoming, outgoing);
    outgoing.writeHead(path.startsWith("/html/") ? 502 : path.startsWith("/closed/") ? 401 : 404);
    outgoing.end("<html>Bad Gateway</html>");
  });
  ({ url } = server);
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

const check = (...args: string[]): ReturnType<typeof runTruewire> => runTruewire(["check", ...args]);

describe("a capture", () => {
  test("without errors: 0", async () => {
    const { code, stdout } = await check("--file", good, "--request", request);
    expect(code).toBe(0);
    expect(stdout).toMatch(/0 errors, 0 warnings, 0 notes, \d+ rules passed/);
  });

  test("with errors: 1, and the report says which", async () => {
    const { code, stdout } = await check("--file", broken);
    expect(code).toBe(1);
    expect(stdout).toContain("end/done");
    expect(stdout).toContain("org-ai");
  });

  // A HAR file was read as the body of an answer, which has no model, no choices and no end: 20 errors of a server that has none.
  test("a HAR file: each answer of an API with its request; what else a page has loaded is left out", async () => {
    const { request: asked, response } = logprobExchange(-1, "lean", true);
    const entry = (url: string, method: string, mimeType: string, text: string, posted?: string) => ({
      time: 1,
      request: {
        method,
        url,
        ...(posted !== undefined && { postData: { mimeType: "application/json", text: posted } }),
      },
      response: { status: 200, headers: [{ name: "content-type", value: mimeType }], content: { mimeType, text } },
    });
    const chat = (body: string) =>
      entry("http://localhost/v1/chat/completions", "POST", "text/event-stream", body, JSON.stringify(asked.body));
    const page = entry("http://localhost/", "GET", "text/html", "<html></html>");
    const har = (name: string, ...entries: object[]): string => {
      const file = join(folder, name);
      writeFileSync(file, JSON.stringify({ log: { version: "1.2", entries } }, null, 2));
      return file;
    };
    const fine = await check("--file", har("good.har", page, chat(response.body)));
    expect(fine.stdout).toMatch(/0 errors/);
    expect(fine.code).toBe(0);
    const bad = await check("--file", har("bad.json", page, chat(response.body.replace("data: [DONE]\n\n", ""))));
    expect(bad.stdout).toContain("end/done");
    expect(bad.stdout).toContain("bad.json: log.entries[1]");
    expect(bad.code).toBe(1);
    const none = await check("--file", har("page.har", page));
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toBe(
      "truewire: page.har: no entry is a POST to an API, such as /v1/chat/completions or /v1/messages.\n",
    );
    const cut = join(folder, "cut.har");
    writeFileSync(cut, '{"log":{"entries":[');
    expect((await check("--file", cut)).stderr).toBe(
      'truewire: cut.har: expected a HAR file: {"log":{"entries":[…]}}.\n',
    );
  });

  test("with warnings: 0, and 1 where more than --max-warnings", async () => {
    expect((await check("--file", warned)).code).toBe(0);
    expect(await check("--file", warned, "--max-warnings", "1")).toMatchObject({ code: 0, stderr: "" });
    const { code, stdout, stderr } = await check("--file", warned, "--max-warnings", "0");
    expect(code).toBe(1);
    expect(stdout).toContain("1 warning");
    expect(stderr).toBe("truewire: 1 warning, and --max-warnings allows 0.\n");
  });

  test("--output writes the report to a file, and nothing else is printed", async () => {
    const file = join(folder, "report.html");
    const { code, stdout } = await check("--file", broken, "--format", "html", "--output", file);
    expect([code, stdout]).toEqual([1, ""]);
    expect(readFileSync(file, "utf8")).toContain("<mark");
  });
});

describe("a server", () => {
  test("only the probes that are asked for are sent", async () => {
    const { code, stdout } = await check(`${url}/v1/`, "--only", "models", "text", "--format", "json");
    expect(code).toBe(0);
    const { exchanges, model } = JSON.parse(stdout) as { exchanges: { id: string }[]; model: string };
    expect(model).toBe("scripted");
    const models = ["models", "model", "model/unknown"];
    expect(exchanges.map(({ id }) => id)).toEqual([...models, "text", "text/stream", "same/text"]);
  });

  test.each([
    ["completions", /^completion/],
    ["embeddings", /^embedding/],
    ["models", /^model/],
  ])("--only %s sends the probes of that API alone", async (api, id) => {
    const { code, stdout } = await check(`${url}/v1`, "--only", api, "--format", "json");
    expect(code).toBe(0);
    const { exchanges } = JSON.parse(stdout) as { exchanges: { id: string }[] };
    expect(exchanges.length).toBeGreaterThan(2);
    expect(exchanges.filter((exchange) => !id.test(exchange.id))).toEqual([]);
  });

  test("--only responses does, too, and tells that this engine obeys nobody", async () => {
    const { code, stdout } = await check(`${url}/v1`, "--only", "responses", "--format", "json");
    expect(code).toBe(1);
    const { exchanges, rules } = JSON.parse(stdout) as {
      exchanges: { id: string }[];
      rules: { id: string; status: string }[];
    };
    expect(exchanges.length).toBeGreaterThan(60);
    expect(exchanges.filter(({ id }) => !/^(same\/)?responses\//.test(id))).toEqual([]);
    const broken = rules.filter(({ status }) => status === "broken").map(({ id }) => id);
    expect(broken.toSorted()).toEqual(["responses/json-text", "responses/logprobs", "responses/required"]);
  });

  // A server without the Responses API is legal; who asks for it is told.
  test("without an API that it need not have: not asked, and errors where the API is asked for", async () => {
    const { stdout } = await check(`${url}/none`, "--model", "m", "--format", "json");
    const { exchanges } = JSON.parse(stdout) as { exchanges: { id: string }[] };
    expect(exchanges.length).toBeGreaterThan(60);
    expect(exchanges.filter(({ id }) => /^(same\/)?responses/.test(id))).toEqual([]);
    const asked = await check(`${url}/none`, "--model", "m", "--only", "responses");
    expect(asked.code).toBe(1);
    expect(asked.stdout).toContain("answer/status");
  });

  test("that is no such server has errors: 1", async () => {
    const { code, stdout } = await check(`${url}/html`, "--model", "m", "--only", "text", "wrong");
    expect(code).toBe(1);
    expect(stdout).toContain("an HTML page");
  });
});

describe("what cannot be checked: 2, one sentence on stderr, nothing on stdout", () => {
  test.each<[string, string[], RegExp]>([
    ["no URL", [], /Give the API's base URL/],
    ["no URL but a word", ["localhost"], /Give the API's base URL/],
    ["nobody listens", ["http://127.0.0.1:9/v1"], /does not answer/],
    ["an unknown format", ["--file", good, "--format", "pdf"], /pretty, json, junit, markdown, html/],
    ["a file that is not there", ["--file", join(folder, "nope.sse")], /cannot be read/],
    ["a request that is no JSON", ["--file", good, "--request", good], /is not JSON/],
    ["a request without a capture", ["http://127.0.0.1:9/v1", "--request", request], /--file/],
    [
      "a number of warnings that is none",
      ["--file", good, "--max-warnings", "few"],
      /--max-warnings must be a whole number/,
    ],
    ["a time-out of nothing", ["http://127.0.0.1:9/v1", "--timeout", "0"], /--timeout/],
  ])("%s", async (_, args, says) => {
    const { code, stdout, stderr } = await check(...args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(says);
    expect(stderr).toMatch(/^truewire: [^\n]+\n$/);
  });

  test("a server that wants a key, has no models, or probes that do not exist", async () => {
    expect((await check(`${url}/closed`)).stderr).toMatch(/--key or in OPENAI_API_KEY/);
    expect((await check(url)).stderr).toContain(`(or is its base URL ${url}/v1?)`);
    const none = await check(`${url}/v1`, "--only", "nothing");
    expect(none.code).toBe(2);
    expect(none.stderr).toMatch(
      /no probe for --only nothing\. It takes APIs \(models, chat, completions, responses, embeddings, messages, ollama, gemini\)/,
    );
  });
});

// `truewire check --list | head` once ended with a stack trace: write EPIPE.
test.skipIf(process.platform === "win32")("a reader that has seen enough is no error", async () => {
  const command = `"${process.execPath}" "${builtMain}" check --list | head -n 1`;
  const { stdout, stderr } = await promisify(execFile)("sh", ["-c", command]);
  expect([stdout, stderr]).toEqual(["# Rules\n", ""]);
});
