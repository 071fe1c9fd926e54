import { copyFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { runTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { admin, ask, serveModels, small, taskEvents, told } from "./support.ts";
import type { ErrorBody, TestServer } from "./support.ts";

const lazy = (name: string, more = ""): string => `{ kind: local, path: ${name}.gguf, load: lazy, ${small}${more} }`;
const eager = (name: string, more = ""): string => `{ kind: local, path: ${name}.gguf, ${small}${more} }`;

async function refusalOf(response: Response): Promise<{ status: number; code: string | null; retryAfter: number }> {
  const { error } = (await response.json()) as ErrorBody;
  // Paths are for whoever runs the server.
  expect(error.message).not.toContain("/");
  return { status: response.status, code: error.code, retryAfter: Number(response.headers.get("retry-after")) };
}

async function withServer(server: Promise<TestServer>, use: (server: TestServer) => Promise<void>): Promise<void> {
  const running = await server;
  try {
    await use(running);
  } finally {
    await running.end();
  }
}

async function stateOf(server: TestServer, name: string): Promise<string | undefined> {
  const states = (await (await admin(server.url, "models")).json()) as { models: { name: string; state: string }[] };
  return states.models.find((model) => model.name === name)?.state;
}

/** An answer that goes on until it is left. */
async function longAnswer(server: TestServer, model: string): Promise<AbortController> {
  const controller = new AbortController();
  const response = await ask(server.url, model, "endless", { stream: true }, controller.signal);
  await response.body?.getReader().read();
  return controller;
}

describe("a model that does not fit", () => {
  test("into the memory for models at all: the server says so at its start, with the numbers", async () => {
    const server = serveModels([lazy("a")], ["memory: 100MiB"]);
    await expect(server).rejects.toThrow(
      /exited with 1\ntruewire: a needs 0\.\d GiB \(.* of weights, .* for 2 × 60000 tokens of context, .*\), but the memory for models is 0\.1 GiB/,
    );
  });

  test("beside those that stay: 503 with Retry-After at once, and the others go on", async () => {
    await withServer(serveModels([eager("a", ", keep: true"), lazy("b")], ["memory: 200MiB"]), async (server) => {
      expect(await refusalOf(await ask(server.url, "b", "plain"))).toEqual({
        status: 503,
        code: "no_room",
        retryAfter: 60,
      });
      expect((await ask(server.url, "a", "plain")).status).toBe(200);
      // Whoever runs the server may unload it all the same.
      expect((await taskEvents(await admin(server.url, "models/unload", "a"))).at(-1)).toMatchObject({
        state: "unloaded",
      });
      expect((await ask(server.url, "b", "plain")).status).toBe(200);
    });
  });

  // The message named neither the models in the way nor the command, and the log no model with load: manual.
  test.each<[string, string, string]>([
    ["on a server of this machine, with the names and the command", "keep: true", ""],
    ["on one with keys, without them", "load: manual", "apiKey: [sk-client-0123456789]"],
  ])("beside those that stay: %s", async (_, stays, keys) => {
    const settings = ["memory: 200MiB", ...(keys === "" ? [] : [keys, "adminKey: [admin-0123456789abcdef]"])];
    await withServer(serveModels([eager("a", `, ${stays}`), lazy("b")], settings), async ({ url, stderr }) => {
      const headers = { "content-type": "application/json", authorization: "Bearer admin-0123456789abcdef" };
      const loaded = await fetch(`${url}/admin/models/load`, { method: "POST", headers, body: '{"model":"a"}' });
      expect(await loaded.text()).toContain('"done"');
      const body = JSON.stringify({ model: "b", messages: [{ role: "user", content: "#plain" }] });
      const asking = { ...headers, authorization: "Bearer sk-client-0123456789" };
      const refused = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: asking, body });
      const { error } = (await refused.json()) as ErrorBody;
      const cure = "Unload one (truewire models unload a), or raise the memory limit (--memory).";
      const message = "There is not enough free memory for the model 'b': models that stay loaded use it";
      expect(error.message).toBe(keys === "" ? `${message} (a). ${cure}` : `${message}.`);
      await until(() => stderr().includes(`Models that stay loaded (keep, or load: manual): a. ${cure}`), "the log");
    });
  });

  test("models that are loaded at the start take turns where there is room for one: the first stays", async () => {
    await withServer(serveModels([eager("a"), eager("b")], ["memory: 200MiB"]), async (server) => {
      expect([await stateOf(server, "a"), await stateOf(server, "b")]).toEqual(["ready", "unloaded"]);
      // The log is written asynchronously: the line may come after the address.
      await until(() => server.stderr().includes("its first request loads it"), "the log says why");
      expect((await ask(server.url, "b", "plain")).status).toBe(200);
      expect([await stateOf(server, "a"), await stateOf(server, "b")]).toEqual(["unloaded", "ready"]);
    });
  });
});

test("two models that need each other's room, one busy for too long: 503, and the answer goes on; then who left is forgotten", async () => {
  await withServer(serveModels([lazy("a"), lazy("b")], ["memory: 200MiB", "loadWait: 1s"]), async (server) => {
    const long = await longAnswer(server, "a");
    expect(await refusalOf(await ask(server.url, "b", "plain"))).toEqual({
      status: 503,
      code: "model_busy",
      retryAfter: 10,
    });
    // Nobody waits any more, so the busy model takes requests again.
    expect((await ask(server.url, "a", "plain")).status).toBe(200);
    const leaves = new AbortController();
    const left = ask(server.url, "b", "plain", {}, leaves.signal).catch(() => "left");
    await until(async () => (await (await fetch(`${server.url}/health`)).text()).includes('"wanted":true'), "b waits");
    leaves.abort();
    expect(await left).toBe("left");
    expect((await ask(server.url, "a", "plain")).status).toBe(200);
    const waiting = ask(server.url, "b", "plain", { stream: true });
    long.abort();
    expect(told(await (await waiting).text()).finish).toBe("stop");
  });
});

test("a file that vanishes: what is loaded goes on; a later load is refused, and works when the file is back", async () => {
  const settings = ["memory: 200MiB"];
  await withServer(serveModels([eager("a"), lazy("b")], settings), async (server) => {
    const [file, elsewhere] = [join(server.folder, "a.gguf"), join(server.folder, "elsewhere")];
    renameSync(file, elsewhere);
    expect((await ask(server.url, "a", "plain")).status).toBe(200);
    expect((await ask(server.url, "b", "plain")).status).toBe(200);
    const refusals = [await ask(server.url, "a", "plain"), await ask(server.url, "a", "plain")];
    for (const refusal of refusals)
      expect(await refusalOf(refusal)).toMatchObject({ status: 503, code: "model_load_failed" });
    await expect.poll(() => server.stderr()).toContain(`${file} does not exist`);
    const told = await (await admin(server.url, "models/load", "a")).text();
    expect(told).toContain(`The model file ${file} does not exist.`);
    renameSync(elsewhere, file);
    // By hand it is tried at once, without the pause after a failure.
    expect((await taskEvents(await admin(server.url, "models/load", "a"))).at(-1)).toMatchObject({
      type: "done",
      state: "ready",
    });
    expect((await ask(server.url, "a", "plain")).status).toBe(200);
  });
});

test("a file that is broken: all who wait are told, and the pause until the next try grows", async () => {
  await withServer(serveModels([lazy("a")]), async (server) => {
    const file = join(server.folder, "a.gguf");
    const whole = join(server.folder, "whole.gguf");
    copyFileSync(file, whole);
    writeProgrammedModel(file, { architecture: "perceptron" });
    const first = await Promise.all([ask(server.url, "a", "plain"), ask(server.url, "a", "plain", { stream: true })]);
    for (const response of first)
      expect(await refusalOf(response)).toEqual({ status: 503, code: "model_load_failed", retryAfter: 1 });
    // One that fails at once, without a process.
    writeFileSync(file, "I am a text.");
    // The second failure in a row pauses for a moment, the fourth for a second.
    let retryAfter = 0;
    await until(async () => {
      const refusal = await refusalOf(await ask(server.url, "a", "plain"));
      expect(refusal.code).toBe("model_load_failed");
      ({ retryAfter } = refusal);
      return retryAfter > 1;
    }, "the pause has grown");
    rmSync(file);
    renameSync(whole, file);
    await until(async () => (await ask(server.url, "a", "plain")).status === 200, "it is loaded after the pause");
  });
});

test("a model goes when nobody used it for long, and a request brings it back; one that is kept stays", async () => {
  const models = [lazy("a", ", idleUnload: 300ms"), eager("b", ", idleUnload: 300ms, keep: true")];
  await withServer(serveModels(models), async (server) => {
    expect((await ask(server.url, "a", "plain")).status).toBe(200);
    await until(async () => (await stateOf(server, "a")) === "unloaded", "a is unloaded");
    expect(await stateOf(server, "b")).toBe("ready");
    expect((await ask(server.url, "a", "plain")).status).toBe(200);
  });
});

test("a model that is loaded by hand: 503 until somebody does, by the command line; an unload waits for its answers", async () => {
  await withServer(serveModels([`{ kind: local, path: a.gguf, load: manual, ${small} }`]), async (server) => {
    expect((await ask(server.url, "a", "plain")).status).toBe(503);
    const models = (...args: string[]): ReturnType<typeof runTruewire> =>
      runTruewire(["models", ...args, "--url", server.url]);
    expect(await models("load", "a")).toMatchObject({ code: 0, stdout: "a is loaded.\n" });
    expect((await models("list")).stdout).toMatch(/^a +ready +\d+ MiB +0 +manual +CPU: /m);
    const long = await longAnswer(server, "a");
    const unloaded = models("unload", "a");
    await until(async () => (await (await fetch(`${server.url}/health`)).text()).includes('"wanted":true'), "it waits");
    long.abort();
    expect(await unloaded).toMatchObject({ code: 0, stdout: "a is unloaded.\n", stderr: "waiting for a\n" });
    expect((await ask(server.url, "a", "plain")).status).toBe(503);
    expect(await models("load", "nobody")).toMatchObject({
      code: 1,
      stderr: "truewire: The model 'nobody' does not exist\n",
    });
  });
});

test("another configuration while it runs: a loaded model stays, how it is kept changes, and a wrong one changes nothing", async () => {
  await withServer(serveModels([eager("a"), lazy("b")], ["memory: 200MiB"]), async (server) => {
    const long = await longAnswer(server, "a");
    server.configure([lazy("a", ", aliases: [alpha], keep: true"), lazy("c")]);
    expect((await taskEvents(await admin(server.url, "reload"))).at(-1)).toMatchObject({
      type: "done",
      models: ["a", "c", "alpha"],
    });
    expect((await ask(server.url, "alpha", "plain")).status).toBe(200);
    expect((await ask(server.url, "b", "plain")).status).toBe(404);
    expect((await refusalOf(await ask(server.url, "c", "plain"))).code).toBe("no_room");
    writeFileSync(join(server.folder, "truewire.yaml"), "port: 0\nmodels: [./nowhere.gguf]\n");
    const wrong = await admin(server.url, "reload");
    expect(wrong.status).toBe(400);
    expect(((await wrong.json()) as ErrorBody).error.message).toMatch(/was not reloaded.*nowhere\.gguf does not exist/);
    expect((await ask(server.url, "alpha", "plain")).status).toBe(200);
    long.abort();
  });
});
