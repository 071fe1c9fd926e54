import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { event, finish, role, startScripted } from "../upstream/scripted-server.ts";
import type { ScriptedServer } from "../upstream/scripted-server.ts";
import { installPacked } from "./install-packed.ts";
import { freePort } from "../support/redis-server.ts";

// The fetch handler of the packed package in other runtimes than Node: each that is on PATH, or in the folder that TRUEWIRE_RUNTIMES
// names, is tested.

const bundler = resolve("node_modules/rolldown/bin/cli.mjs");

/** The handler as every runtime runs it; `UPSTREAM` is the upstream's base URL. */
const worker = `
  let handler;
  const said = (promise) => promise.then(() => "nothing", (error) => error.message);
  export default {
    async fetch(request, { UPSTREAM }) {
      const { pathname } = new URL(request.url);
      const opened = (model) => createHandler({ models: [model] }).ready();
      if (pathname === "/local") return new Response(await said(opened({ kind: "local", path: "model.gguf" })));
      if (pathname === "/file") return new Response(await said(opened({ kind: "program", program: "./program.ts" })));
      handler ??= createHandler({
        models: [
          { kind: "upstream", name: "up", url: UPSTREAM, timeouts: { idle: "1s" } },
          { kind: "program", name: "hello", program: async function* () { yield "Hello"; yield " there."; } },
        ],
      });
      return handler.fetch(request);
    },
  };`;

interface Runtime {
  readonly name: string;
  /** Whether the package is bundled for the web. */
  readonly bundled: boolean;
  /** Files beside worker.mjs. */
  files(port: number): Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

const runtimes: readonly Runtime[] = [
  {
    name: "bun",
    bundled: false,
    files: (port) => ({
      "bun.mjs": `import worker from "./worker.mjs";
        Bun.serve({ port: ${port}, hostname: "127.0.0.1", fetch: (request) => worker.fetch(request, process.env) });`,
    }),
    args: ["bun.mjs"],
  },
  {
    name: "deno",
    bundled: false,
    files: (port) => ({
      "deno.mjs": `import worker from "./worker.mjs";
        const env = { UPSTREAM: Deno.env.get("UPSTREAM") };
        Deno.serve({ port: ${port}, hostname: "127.0.0.1" }, (request) => worker.fetch(request, env));`,
    }),
    args: ["run", "--allow-all", "deno.mjs"],
  },
  {
    name: "workerd",
    bundled: true,
    files: (port) => ({
      "workerd.capnp": `using Workerd = import "/workerd/workerd.capnp";
        const config :Workerd.Config = (
          services = [
            (name = "main", worker = .worker),
            (name = "internet", network = (allow = ["public", "private", "local"])),
          ],
          sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
        );
        const worker :Workerd.Worker = (
          modules = [(name = "worker", esModule = embed "bundle.mjs")],
          bindings = [(name = "UPSTREAM", fromEnvironment = "UPSTREAM")],
          compatibilityDate = "2025-01-01",
        );`,
    }),
    args: ["serve", "workerd.capnp"],
  },
];

function find(name: string): string | undefined {
  const folders = process.env.TRUEWIRE_RUNTIMES ?? process.env.PATH ?? "";
  return folders
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
}

const found = runtimes.flatMap((runtime) => {
  const file = runtime.bundled && !existsSync(bundler) ? undefined : find(runtime.name);
  return file === undefined ? [] : [{ ...runtime, file: resolve(file) }];
});
const absent = runtimes.map(({ name }) => name).filter((name) => !found.some((runtime) => runtime.name === name));
if (absent.length > 0) console.log(`skipped: runtimes that were not found: ${absent.join(", ")}`);

describe.skipIf(found.length === 0)("the fetch handler", () => {
  let folder: string;
  let upstream: ScriptedServer;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "truewire-runtimes-"));
    await installPacked(folder);
    upstream = await startScripted((response, body) => {
      if (body["stream"] !== true) {
        const choice = { index: 0, message: { role: "assistant", content: "Hé!" }, finish_reason: "stop" };
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ id: "x", object: "chat.completion", created: 1, model: "m", choices: [choice] }));
        return;
      }
      const bytes = Buffer.from(role + event({ content: "Hé" }) + event({ content: "!" }));
      // Cut within the é, in two pieces.
      const cut = bytes.indexOf(0xc3) + 1;
      response.write(bytes.subarray(0, cut));
      setTimeout(() => {
        response.write(bytes.subarray(cut));
        if (body["user"] !== "stalls") response.end(`${finish}data: [DONE]\n\n`);
      }, 50);
    });
  });

  afterAll(async () => {
    await upstream.close();
    await rm(folder, { recursive: true, force: true });
  });

  describe.each(found)("in $name", ({ file, files, args, bundled }) => {
    let child: ChildProcess;
    let url: string;
    let output = "";

    beforeAll(async () => {
      const port = await freePort();
      const entry = bundled
        ? 'import { createFetchHandler as createHandler } from "truewire/fetch";'
        : 'import { createHandler } from "truewire/server";';
      await writeFile(join(folder, "worker.mjs"), entry + worker);
      for (const [name, text] of Object.entries(files(port))) await writeFile(join(folder, name), text);
      if (bundled) {
        const options = ["--platform", "browser", "--format", "esm", "--no-codeSplitting", "--file", "bundle.mjs"];
        await promisify(execFile)(process.execPath, [bundler, "worker.mjs", ...options], { cwd: folder });
      }
      child = spawn(file, [...args], { cwd: folder, env: { ...process.env, UPSTREAM: upstream.url } });
      child.stdout?.on("data", (text) => (output += String(text)));
      child.stderr?.on("data", (text) => (output += String(text)));
      url = `http://127.0.0.1:${port}`;
      for (let attempt = 0; ; attempt++) {
        const up = await fetch(`${url}/health`).then(
          () => true,
          () => false,
        );
        if (up) return;
        if (child.exitCode !== null) throw new Error(`it does not listen:\n${output}`);
        await new Promise((settle) => setTimeout(settle, 100));
      }
    });

    afterAll(async () => {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    });

    const ask = (members: object): Promise<Response> =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ messages: [{ role: "user", content: "Hi" }], ...members }),
      });

    test("an upstream's answer", async () => {
      const answer = await ask({ model: "m" });
      expect(answer.status, output).toBe(200);
      expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "Hé!" }, finish_reason: "stop" }] });
    });

    test.each([["m"], ["hello"]])("a stream of %s", async (model) => {
      const text = await (await ask({ model, stream: true })).text();
      const contents = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, content]) => content);
      expect(contents, output).toEqual(model === "m" ? ["Hé", "!"] : ["Hello", " there."]);
      expect(text).toMatch(/"finish_reason":"stop"\}\]\}\n\ndata: \[DONE\]\n\n$/);
    });

    test("an error in OpenAI's shape", async () => {
      const answer = await ask({ model: "nobody" });
      expect(answer.status).toBe(404);
      expect(await answer.json()).toMatchObject({ error: { code: "model_not_found" } });
    });

    // In Workers, the one timer of all answers ended with the request that had set it: later ones waited for ever.
    test("time-outs hold for every request, not only the first", async () => {
      for (let time = 0; time < 2; time++) {
        const text = await (await ask({ model: "m", stream: true, user: "stalls" })).text();
        expect(text).toContain("sent nothing for 1 seconds");
        expect(text).toMatch(/data: \[DONE\]\n\n$/);
      }
    });

    test.skipIf(!bundled)("what needs Node says so in one sentence", async () => {
      const said = async (path: string): Promise<string> => (await fetch(url + path)).text();
      expect(await said("/local")).toMatch(/^A local model needs Node\. /);
      expect(await said("/file")).toMatch(/^A program that is named by its file needs Node\. /);
    });
  });
});
