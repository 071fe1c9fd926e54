import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { pullModel as PullModel } from "../../src/engines/llama/pull-model.ts";
import { fault } from "../faults/fault.ts";
import { outcome } from "../faults/outcome.ts";
import { canMount, mountSmallDisk } from "../faults/support.ts";
import { startHub } from "../support/hub-double.ts";
import type { HubDouble } from "../support/hub-double.ts";
import { runTruewire } from "../support/serve.ts";
import { until } from "../support/scripted-engine.ts";
import { admin, ask, serveModels, small, taskEvents } from "./support.ts";
import type { TestServer } from "./support.ts";

const built = resolve(process.env.TRUEWIRE_DIST ?? "dist", "engines/llama/pull-model.js");
const { pullModel } = (await import(pathToFileURL(built).href)) as { readonly pullModel: typeof PullModel };

let folder: string;
let hub: HubDouble;
let server: TestServer;
let modelsFolder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "truewire-hub-"));
  modelsFolder = join(folder, "models");
  hub = await startHub(folder);
  const model = `{ kind: local, path: "hf:somebody/tiny:Q4_K_M", name: tiny, load: lazy, modelsFolder: "${modelsFolder}", ${small} }`;
  server = await serveModels([model], ["logLevel: info"], { env: { HF_ENDPOINT: hub.endpoint } });
});
afterAll(async () => {
  await server.end();
  hub.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  rmSync(modelsFolder, { recursive: true, force: true });
  hub.manner = "whole";
  hub.sent = 0;
  logBegan = server.stderr().length;
});

/** Where the log was when the test began. */
let logBegan = 0;

function logged(): string {
  return server.stderr().slice(logBegan);
}

/** How a pull by the admin API ended: its last event, or what it was refused with. */
async function pulled(): Promise<string> {
  const response = await admin(server.url, "models/pull", "tiny");
  if (!response.ok) return String(response.status);
  const { type } = (await taskEvents(response)).at(-1) ?? {};
  return `200, \`${String(type)}\``;
}

fault("the connection of a download breaks, again and again", async () => {
  hub.manner = "breaks";
  return { clients: [`the pull ${await pulled()}`], log: logged };
});

// The file stayed, and no later download replaced it.
fault("a download brings what is no model", async () => {
  hub.manner = "zeros";
  const [pull, answer] = [await pulled(), await outcome(ask(server.url, "tiny", "plain"))];
  hub.manner = "whole";
  await until(async () => (await outcome(ask(server.url, "tiny", "plain"))) === "200", "it is downloaded again");
  await taskEvents(await admin(server.url, "models/unload", "tiny"));
  return { clients: [`the pull ${pull}`, `an answer ${answer}`], log: logged };
});

fault(
  "the disk is full while a model is downloaded",
  async () => {
    mkdirSync(modelsFolder);
    mountSmallDisk(modelsFolder, 8 * 2 ** 20);
    const full = await pulled();
    execFileSync("mount", ["-o", "remount,size=64m", modelsFolder]);
    return { clients: [`the pull ${full}`, `when there is space ${await pulled()}`], log: logged };
  },
  canMount,
);

test("a pull with its progress, by the command line; then the model is here, and is loaded without another download", async () => {
  hub.manner = "breaks";
  const run = await runTruewire(["models", "pull", "tiny", "--url", server.url]);
  expect(run.code).toBe(0);
  // Every connection broke off, and the next one went on.
  const file = run.stdout.trim();
  expect(readFileSync(file).equals(hub.bytes)).toBe(true);
  expect(run.stderr).toMatch(/^downloading tiny( \d+ %)?$/m);
  const before = hub.sent;
  expect((await ask(server.url, "tiny", "plain")).status).toBe(200);
  expect(hub.sent).toBe(before);
  // A model whose file is deleted is downloaded again with the next request.
  await taskEvents(await admin(server.url, "models/unload", "tiny"));
  rmSync(modelsFolder, { recursive: true });
  hub.manner = "whole";
  expect((await ask(server.url, "tiny", "plain")).status).toBe(503);
  expect((await ask(server.url, "tiny", "plain")).status).toBe(200);
  await taskEvents(await admin(server.url, "models/unload", "tiny"));
});

test("whoever leaves stops the pull; the next one goes on where it ended; two who want the same share one", async () => {
  hub.manner = "slow";
  const leaves = new AbortController();
  const pulling = fetch(`${server.url}/admin/models/pull`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"model":"tiny"}',
    signal: leaves.signal,
  }).then((response) => response.text());
  await until(() => hub.sent > 22 * 2 ** 20, "a part has arrived");
  leaves.abort();
  await expect(pulling).rejects.toThrow();
  await until(async () => {
    const before = hub.sent;
    await new Promise((go) => setTimeout(go, 600));
    return hub.sent === before;
  }, "the download has stopped");
  hub.manner = "whole";
  const [one, two] = await Promise.all([
    admin(server.url, "models/pull", "tiny"),
    admin(server.url, "models/pull", "tiny"),
  ]);
  const [events, others] = [await taskEvents(one), await taskEvents(two)];
  // The library keeps whole pieces of 5 MiB.
  expect(Number(events[0]?.bytes)).toBeGreaterThanOrEqual(5 * 2 ** 20);
  expect([events.at(-1), others.at(-1)]).toMatchObject([{ type: "done" }, { type: "done" }]);
  expect(readFileSync(String(events.at(-1)?.path)).equals(hub.bytes)).toBe(true);
});

test("a hub that falls silent: the pull fails after its time, and says that the next one goes on", async () => {
  hub.manner = "silent";
  const pull = pullModel({ model: "hf:somebody/tiny:Q4_K_M", modelsFolder, hub: hub.endpoint }, { stalledMs: 2000 });
  await expect(pull).rejects.toMatchObject({
    reason: "download-failed",
    message: expect.stringMatching(/nothing arrived for 2 seconds; what is here stays/) as string,
  });
});

test("a name that the hub does not have: an error in OpenAI's shape, and a request is told so", async () => {
  const response = await admin(server.url, "models/pull", "hf:nobody/nothing:Q4_K_M");
  const text = await response.text();
  expect(text).toContain("could not be downloaded");
  expect(text).toContain('"error":{"message"');
  expect(existsSync(join(modelsFolder, "nothing"))).toBe(false);
});
