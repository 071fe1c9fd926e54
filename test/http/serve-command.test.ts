import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { until } from "../support/scripted-engine.ts";
import { keyOf } from "../keys/support.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import { chat, events, json } from "../support/transports.ts";

const run = promisify(execFile);
let folder: string;
let model: string;
let program: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "truewire-serve-"));
  model = join(folder, "programmed.gguf");
  writeProgrammedModel(model);
  program = join(folder, "slow.mjs");
  await writeFile(
    program,
    `export default async function* ({ messages }) {
      const count = Number(messages.at(-1).content);
      for (let word = 0; word < count; word++) {
        yield "word" + word + " ";
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }`,
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A chat with the program above that says so many words. */
function words(count: number): RequestInit {
  return chat(String(count), { model: "slow", stream: true });
}

describe("truewire serve", () => {
  test("a local model under an alias, beside a program: both answer, and the printed curl line works", async () => {
    const server = await startTruewire([`mine=${model}`, program, "--threads", "1"]);
    const list = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(["mine", "slow"]);

    const answer = await fetch(`${server.url}/v1/chat/completions`, chat("#plain", { model: "mine" }));
    expect(await answer.json()).toMatchObject({
      model: "mine",
      choices: [{ message: { content: "The quick brown fox jumps over the lazy dog." }, finish_reason: "stop" }],
    });
    const fromProgram = events(await (await fetch(`${server.url}/v1/chat/completions`, words(3))).text());
    expect(JSON.stringify(fromProgram)).toContain("word2");

    await until(() => server.stdout().includes("curl"), "the curl line is printed");
    const line = server
      .stdout()
      .split("\n")
      .find((text) => text.trim().startsWith("curl"));
    const { stdout } = await run("sh", ["-c", `${line ?? ""} -s`]);
    expect(events(stdout).at(-1)).toBe("data: [DONE]");
    expect(await server.stop()).toBe(0);
  });

  test("keys come from the environment, and no log shows them", async () => {
    const server = await startTruewire([program], { env: { TRUEWIRE_API_KEY: "sk-from-the-environment" } });
    expect((await fetch(`${server.url}/v1/models`)).status).toBe(401);
    const headers = { authorization: "Bearer sk-from-the-environment" };
    expect((await fetch(`${server.url}/v1/models`, { headers })).status).toBe(200);
    expect(
      (await fetch(`${server.url}/v1/models`, { headers: { authorization: "Bearer sk-from-somewhere-else" } })).status,
    ).toBe(401);
    expect(await server.stop()).toBe(0);
    expect(server.stdout() + server.stderr()).not.toMatch(/sk-from/);
  });

  // A client's own key, exported as the start message once proposed, became a key of the server without limits. The tests never gave one
  // process both the server's keys and a client's environment.
  test("TRUEWIRE_API_KEY together with keys with limits is an error at the start", async () => {
    const { key, entry } = keyOf("alice", { requestsPerMinute: 1 });
    const env = { TRUEWIRE_API_KEY: key };
    const keysFile = join(folder, "keys.yaml");
    await writeFile(keysFile, JSON.stringify([entry]));
    const config = join(folder, "with-keys.yaml");
    await writeFile(config, JSON.stringify({ port: 0, keys: [entry], models: [program] }));
    const configWithFile = join(folder, "with-keys-file.yaml");
    await writeFile(configWithFile, JSON.stringify({ port: 0, keysFile, models: [program] }));
    for (const args of [
      [program, "--port", "0", "--keys-file", keysFile],
      ["--config", config],
      ["--config", configWithFile],
    ]) {
      const { code, stdout, stderr } = await runTruewire(["serve", ...args], { env });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(/^truewire: TRUEWIRE_API_KEY is set together with keys.*unset TRUEWIRE_API_KEY/);
      expect(stderr).not.toContain(key);
    }
  });

  test("the printed curl line works with the key in OPENAI_API_KEY, which the server itself does not read", async () => {
    const { key, entry } = keyOf("alice", { requestsPerMinute: 1 });
    const keysFile = join(folder, "keys-of-curl.yaml");
    await writeFile(keysFile, JSON.stringify([entry]));
    const env = { OPENAI_API_KEY: key, ANTHROPIC_API_KEY: key };
    const server = await startTruewire([program, "--keys-file", keysFile], { env });
    await until(() => server.stdout().includes("curl"), "the curl line is printed");
    const line = server
      .stdout()
      .split("\n")
      .find((text) => text.trim().startsWith("curl"));
    const ask = (): Promise<{ stdout: string }> =>
      run("sh", ["-c", `${line ?? ""} -s`], { env: { ...process.env, ...env } });
    expect(events((await ask()).stdout).at(-1)).toBe("data: [DONE]");
    expect((await ask()).stdout).toContain("rate_limit_exceeded");
    expect(await server.stop()).toBe(0);
  });

  test("SIGTERM: what runs is finished, then exit code 0", async () => {
    const server = await startTruewire([program]);
    const response = await fetch(`${server.url}/v1/chat/completions`, words(40));
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
    let { value: text = "" } = await reader.read();
    const stopped = server.stop();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
    }
    expect(text).toContain("word39");
    expect(events(text).at(-1)).toBe("data: [DONE]");
    expect(await stopped).toBe(0);
  });

  test("SIGTERM with --grace: what does not finish in time is told so; a second signal does not wait", async () => {
    const server = await startTruewire([program, "--grace", "200ms"]);
    const response = await fetch(`${server.url}/v1/chat/completions`, words(100_000));
    const stopped = server.stop();
    const chunks = events(await response.text());
    expect(chunks.slice(-2)).toMatchObject([{ error: { type: "server_error" } }, "data: [DONE]"]);
    expect(await stopped).toBe(0);

    const patient = await startTruewire([program, "--grace", "1h"]);
    const endless = await fetch(`${patient.url}/v1/chat/completions`, words(100_000));
    void patient.stop();
    await until(async () => !(await reachable(patient.url)), "it accepts no more");
    expect(await patient.stop("SIGINT")).toBe(1);
    await endless.text().catch(() => {});
  });

  // Once, a connection that was in use when the signal came could go on sending requests until the server was gone.
  test("SIGTERM: a connection that stays open is answered once more, and then closed", async () => {
    const server = await startTruewire([program, "--grace", "1h"]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (path: string, body?: string): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        const options = { agent, method: body === undefined ? "GET" : "POST" };
        request(`${server.url}${path}`, { ...options, headers: { "content-type": "application/json" } }, resolve)
          .on("error", reject)
          .end(body);
      });
    const endless = await fetch(`${server.url}/v1/chat/completions`, words(100_000));
    const busy = await ask("/v1/chat/completions", words(200).body as string);
    void server.stop();
    await until(async () => !(await reachable(server.url)), "it accepts no more");
    expect(busy.headers.connection).toBe("keep-alive");
    await text(busy);
    const next = await ask("/health");
    expect(next.headers.connection).toBe("close");
    await text(next);
    await expect(ask("/health")).rejects.toThrow("ECONNREFUSED");
    expect(await server.stop("SIGINT")).toBe(1);
    agent.destroy();
    await endless.text().catch(() => {});
  });

  test("SIGHUP reads the configuration again, without dropping streams; a wrong one changes nothing", async () => {
    const file = join(folder, "reload.yaml");
    await writeFile(file, `port: 0\nmodels:\n  - slow.mjs\n`);
    const server = await startTruewire(["--config", file]);
    const names = async (): Promise<string[]> => {
      const list = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
      return list.data.map(({ id }) => id);
    };
    expect(await names()).toEqual(["slow"]);
    const response = await fetch(`${server.url}/v1/chat/completions`, words(60));
    await writeFile(file, `port: 0\nmodels:\n  - other=slow.mjs\n`);
    server.process.kill("SIGHUP");
    await until(async () => (await names())[0] === "other", "the new configuration is used");
    await writeFile(file, `port: 0\nmodels:\n  - kind: nonsense\n`);
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("nothing has changed"), "the wrong one is refused");
    expect(server.stderr()).toContain("reload.yaml:3: models[0].kind:");
    expect(await names()).toEqual(["other"]);
    const text = await response.text();
    expect(text).toContain("word59");
    expect(events(text).at(-1)).toBe("data: [DONE]");
    expect(await server.stop()).toBe(0);
  });

  test("SIGHUP without a configuration file is no reason to end", async () => {
    const server = await startTruewire([program]);
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("no configuration file"), "it says so");
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  test("a stream is logged when asked, a request always", async () => {
    const log = join(folder, "events.log");
    const server = await startTruewire([program, "--log-stream", log]);
    const response = await fetch(`${server.url}/v1/chat/completions`, words(2));
    const sent = await response.text();
    expect(await server.stop()).toBe(0);
    const { readFile } = await import("node:fs/promises");
    const lines = (await readFile(log, "utf8")).trimEnd().split("\n");
    expect(lines).toHaveLength(events(sent).length);
    expect(lines[0]).toContain(response.headers.get("x-request-id"));
    expect(JSON.parse(server.stderr().trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
      msg: "finished",
      req: response.headers.get("x-request-id"),
      model: "slow",
      status: 200,
    });
  });
});

describe("truewire serve, when it cannot", () => {
  test.each([
    [
      "a port in use",
      async (): Promise<string[]> => [program, "--port", new URL((await occupied()).url).port],
      /^truewire: Port \d+ on 127\.0\.0\.1 is in use by another program; choose another one with --port\.\n$/,
    ],
    ["a file that is not there", async () => ["nowhere.gguf"], /^truewire: .*nowhere\.gguf.*\n$/],
    ["a file that is no GGUF", async () => [await notAGguf()], /^truewire: .*text\.gguf is not a GGUF file.*\n$/],
    ["an unknown architecture", async () => [unknownArchitecture()], /^truewire: .*architecture.*\n$/i],
    ["a program that is not there", async () => ["./nowhere.ts"], /^truewire: \.\/nowhere\.ts does not exist\.\n$/],
    [
      "a wrong value",
      async () => [program, "--hold", "soon"],
      /^truewire: --hold soon: expected a time such as 500ms, 10s or 2m\n$/,
    ],
    ["a wrong wire", async () => [program, "--wire", "fat"], /^truewire: --wire fat: expected lean or exact\n$/],
    [
      "an unknown format",
      async () => [program, "--tool-format", "smoke"],
      /^truewire: --tool-format smoke: format "smoke" is not known; known are .*hermes/,
    ],
    [
      "a configuration that is not there",
      async () => ["--config", "nowhere.yaml"],
      /^truewire: nowhere\.yaml: there is no such file\n$/,
    ],
  ] as [string, () => Promise<string[]>, RegExp][])(
    "%s: one clear sentence, exit code 1",
    async (_, args, sentence) => {
      const given = await args();
      // The default port may be taken on the machine that tests.
      const port = given.includes("--port") || given.includes("--config") ? [] : ["--port", "0"];
      const { code, stdout, stderr } = await runTruewire(["serve", ...given, ...port], { cwd: folder });
      expect(stderr).toMatch(sentence);
      expect(code).toBe(1);
      expect(stdout).toBe("");
    },
  );

  const servers: { stop(): Promise<unknown>; url: string }[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.stop())));

  async function occupied(): Promise<{ url: string }> {
    const server = await startTruewire([program]);
    servers.push(server);
    return server;
  }

  async function notAGguf(): Promise<string> {
    const file = join(folder, "text.gguf");
    await writeFile(file, "this is a text");
    return file;
  }

  function unknownArchitecture(): string {
    const file = join(folder, "unknown.gguf");
    writeProgrammedModel(file, { architecture: "never-heard-of" });
    return file;
  }
});

describe("commands that cannot", () => {
  test.each([
    [["serve", "--prot", "80"], /unknown option '--prot'\n\(Did you mean --port\?\)\n\(run truewire serve --help /],
    [["models", "lst"], /unknown command 'lst'\n\(Did you mean list\?\)\n\(run truewire models --help /],
    [["serve", "--context-size", "12abc", "x.gguf"], /^truewire: --context-size 12abc: expected a whole number/],
    [
      ["serve", "--config", "typo.yaml"],
      /^truewire: typo\.yaml:1: modles: there is no such setting; did you mean models\?\n$/,
    ],
    [["config", "check", "empty.yaml"], /^truewire: empty\.yaml: models: is empty; expected a model/],
    [["replay", "nope.jsonl"], /^truewire: nope\.jsonl: there is no such file; expected a recording/],
    // These named what is wrong, or a file that nobody had meant, and never what to do next; each sentence was read by nobody.
    [
      ["serve", "qwen3:4b"],
      /^truewire: The model file qwen3:4b does not exist\. If qwen3:4b is a model of Ollama, .*truewire serve http:\/\/localhost:11434\. To download a GGUF file: truewire serve hf:OWNER\/REPO:QUANT\n$/,
    ],
    [["serve", "llama3.2"], /^truewire: The model file llama3\.2 does not exist\. If llama3\.2 is a model of Ollama, /],
    [
      ["serve", "htp://localhost:11434"],
      /^truewire: htp:\/\/localhost:11434 is no address of a server: expected http:\/\/ or https:\/\/, not htp:\/\/\. Did you mean http:\/\/localhost:11434\?\n$/,
    ],
    [["serve", "ws://localhost:1"], /expected http:\/\/ or https:\/\/, not ws:\/\/\.\n$/],
    [
      ["serve", "modle.gguf"],
      /^truewire: The model file modle\.gguf does not exist\. Did you mean model\.gguf\? To download/,
    ],
    [
      ["llama3.2"],
      /^truewire: There is no command llama3\.2\. If llama3\.2 is a model of Ollama, .*\n\(run truewire --help/,
    ],
    [
      ["http://localhost:1"],
      /^truewire: There is no command http:\/\/localhost:1\. To serve it: truewire serve http:\/\/localhost:1\./,
    ],
    [["serv"], /unknown command 'serv'\n\(Did you mean serve\?\)/],
    [
      ["render", "--template", "nope"],
      /^truewire: --template nope: there is no such file; expected a Jinja file, or a GGUF file that holds a template\n$/,
    ],
    [
      ["serve", "--tool-format", "hermez", "shout.mjs"],
      /^truewire: --tool-format hermez: format "hermez" is not known; did you mean hermes\? \(truewire formats lists all\)\n$/,
    ],
    [
      ["config", "check", "key.yaml"],
      /^truewire: key\.yaml:1: apikey: there is no such setting; did you mean apiKey\?\n/,
    ],
    [["check", "localhost:1"], /^truewire: http:\/\/localhost:1 does not answer: /],
  ] as [string[], RegExp][])("%j: what was expected, and what to do next", async (args, sentence) => {
    await writeFile(join(folder, "typo.yaml"), "modles: []\n");
    await writeFile(join(folder, "empty.yaml"), "models: []\n");
    await writeFile(join(folder, "key.yaml"), "apikey: abc\nmodels: [model.gguf]\n");
    await writeFile(join(folder, "model.gguf"), "");
    await writeFile(join(folder, "shout.mjs"), 'export default () => "HELLO";\n');
    const { code, stdout, stderr } = await runTruewire(args, { cwd: folder });
    expect(stderr).toMatch(sentence);
    expect(code).not.toBe(0);
    expect(stdout).toBe("");
  });

  // It said that the file is valid, and exited with 0; serve then refused it.
  test("config check refuses model files that do not exist, each with its line", async () => {
    const lines = [
      "models:",
      "  - nowhere.gguf",
      "  - kind: local",
      "    path: sub/other.gguf",
      "  - hf:owner/repo:Q4_K_M",
    ];
    await writeFile(join(folder, "missing.yaml"), `${lines.join("\n")}\n`);
    const { code, stdout, stderr } = await runTruewire(["config", "check", "missing.yaml"], { cwd: folder });
    expect([code, stdout]).toEqual([1, ""]);
    const found = stderr.replaceAll(folder, "FOLDER");
    expect(found).toContain("missing.yaml:2: models[0]: the model file FOLDER/nowhere.gguf does not exist\n");
    expect(found).toContain("missing.yaml:4: models[1].path: the model file FOLDER/sub/other.gguf does not exist\n");
    await writeFile(join(folder, "nowhere.gguf"), "");
    await mkdir(join(folder, "sub"), { recursive: true });
    await writeFile(join(folder, "sub/other.gguf"), "");
    const complete = await runTruewire(["config", "check", "missing.yaml"], { cwd: folder });
    expect([complete.code, complete.stdout]).toEqual([0, "missing.yaml is valid. It has 3 entries in models.\n"]);
  });

  test("HTTPS to the port of HTTP is a sentence in the log", async () => {
    const server = await startTruewire([program]);
    await expect(fetch(`${server.url.replace("http:", "https:")}/v1/models`)).rejects.toThrow();
    await until(() => server.stderr().includes("use http://"), "the log names the scheme");
    await server.stop();
  });
});

describe("file descriptors", () => {
  test.runIf(process.platform === "linux")("that run out are a 503 and a log line, not a crash", async () => {
    // The limit holds for the server that this shell becomes. Node opens some hundred files at once when it loads the modules.
    const { spawn } = await import("node:child_process");
    const { builtMain } = await import("../support/serve.ts");
    const child = spawn("sh", [
      "-c",
      `ulimit -n 256; exec "$0" "$@"`,
      process.execPath,
      builtMain,
      "serve",
      "--port",
      "0",
      program,
    ]);
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    await until(() => /\/v1\b[^\n]*\n/.test(stdout), "it listens");
    const url = /http:\/\/\S+(?=\/v1)/.exec(stdout)?.[0] ?? "";
    const { connect } = await import("node:net");
    const sockets = Array.from({ length: 400 }, () => connect(Number(new URL(url).port), "127.0.0.1"));
    const refusals: string[] = [];
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.setEncoding("utf8").on("data", (text: string) => refusals.push(text));
    }
    await until(() => refusals.length > 0, "some are refused");
    expect(refusals[0]).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
    expect(refusals[0]).toContain('"code":"too_many_connections"');
    await until(() => stderr.includes("no file descriptors left"), "it is in the log");
    for (const socket of sockets) socket.destroy();
    await until(async () => (await fetch(`${url}/v1/models`).catch(() => null))?.status === 200, "it serves on");
    const exited = new Promise((resolve) => child.on("exit", resolve));
    child.kill();
    expect(await exited).toBe(0);
  });
});

async function reachable(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    () => true,
    () => false,
  );
}

test("a completions request in the last form of the API works as well", async () => {
  const server = await startTruewire([program]);
  const response = await fetch(`${server.url}/v1/completions`, json({ model: "slow", prompt: "2" }));
  expect(await response.json()).toMatchObject({ object: "text_completion", choices: [{ text: "word0 word1 " }] });
  expect(await server.stop()).toBe(0);
});
