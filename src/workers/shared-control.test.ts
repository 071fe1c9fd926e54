import { expect, test } from "vitest";
import { peerPair } from "../../test/support/peer-pair.ts";
import type { PeerPair } from "../../test/support/peer-pair.ts";
import { answer, ScriptedEngine } from "../../test/support/scripted-engine.ts";
import type { Engine } from "../core/engine.ts";
import { invalidRequest } from "../core/failure.ts";
import type { ModelControl, ControlTask } from "../server/admin/model-control.ts";
import { modelStateOf } from "../server/admin/model-control.ts";
import { ModelDirectory } from "../server/model-directory.ts";
import type { ServedEngine } from "../server/model-directory.ts";
import { EngineHost, EngineStates } from "./engine-host.ts";
import { RemoteEngines } from "./remote-engines.ts";
import { SharedControl, shareControl } from "./shared-control.ts";

const served = (name: string, engine: Engine, ...aliases: string[]): ServedEngine => ({
  name,
  engine,
  aliases,
  settings: {},
});
const scripted = (...models: string[]): Engine => new ScriptedEngine(() => answer(["Hi"]), ...models);

/** What the primary was asked to do, and a control that notes it. */
interface Noted {
  readonly done: string[];
  /** Of the load that goes on until it is left. */
  readonly left: Promise<void>;
}

/** A worker with an upstream and two models of the primary, the second of which has the name of the upstream's model. */
async function open(more: Partial<ModelControl> = {}): Promise<Noted & PeerPair & { control: SharedControl }> {
  const pair = peerPair();
  const [first, second] = [scripted("first"), scripted("same")];
  const inPrimary = new ModelDirectory([served("first", first), served("second", second)]);
  const engines = new Map([
    ["a", first],
    ["b", second],
  ]);
  new EngineHost(pair.primary, new EngineStates(), async (key) => engines.get(key) ?? first).listen();
  const done: string[] = [];
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  const control: ModelControl = {
    list: async () => ({
      memory: { limit: 10, used: 5 },
      models: inPrimary.engines.map((each) => ({ ...modelStateOf(each), memory: 3 })),
    }),
    load: async (name, { report: tell, signal }) => {
      done.push(`load ${name}`);
      tell({ phase: "wait" });
      tell({ phase: "load", fraction: 0.5 });
      if (name !== "first") return { name, models: [], state: "ready" };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      leave();
      throw signal.reason;
    },
    keep: async (name, keep) => {
      done.push(`${keep ? "pin" : "unpin"} ${name}`);
      return { name, models: [], state: "ready", keep };
    },
    keepLoaded: async (name, ms) => void done.push(`keep ${name} ${ms}`),
    unload: async (name) => {
      throw invalidRequest(`${name} stays.`, "model", "kept");
    },
    pull: async (name) => {
      done.push(`pull ${name}`);
      return { path: "/models/it.gguf" };
    },
    reload: async () => ({ models: ["first", "same"] }),
    ...more,
  };
  shareControl(pair.primary, control, () => inPrimary);
  const remote = new RemoteEngines(pair.worker);
  const directory = new ModelDirectory([
    served("up", scripted("same", "other")),
    served("first", await remote.open("a"), "alias"),
    served("second", await remote.open("b")),
  ]);
  return { ...pair, done, left, control: new SharedControl(pair.worker, () => directory) };
}

const quiet = (signal = new AbortController().signal): ControlTask => ({ signal, report() {} });

test("a worker lists the primary's models, and its own upstreams, in its order", async () => {
  const { control } = await open();
  expect(await control.list()).toEqual({
    memory: { limit: 10, used: 5 },
    models: [
      { name: "up", models: ["same", "other"], state: "ready" },
      { name: "first", models: ["first"], state: "ready", memory: 3 },
      { name: "second", models: ["same"], state: "ready", memory: 3 },
    ],
  });
  expect(await control.reload()).toEqual({ models: ["same", "other", "first", "second/same", "alias"] });
});

test("names mean in the primary what they mean to the worker's clients; progress comes back", async () => {
  const { control, done } = await open();
  const told: unknown[] = [];
  const task = { signal: new AbortController().signal, report: (progress: unknown) => void told.push(progress) };
  expect(await control.load("second/same", task)).toMatchObject({ name: "same" });
  expect(told).toEqual([{ phase: "wait" }, { phase: "load", fraction: 0.5 }]);
  await control.pull("alias", quiet());
  expect(await control.pull("hf:owner/repo", quiet())).toEqual({ path: "/models/it.gguf" });
  await control.keepLoaded("second/same", 5000);
  await control.keepLoaded("alias", Infinity);
  await control.keepLoaded("other", 1);
  expect(await control.keep("alias", true)).toMatchObject({ name: "first", keep: true });
  await expect(control.keep("other", true)).rejects.toThrow("is not a local model");
  expect(done).toEqual([
    "load same",
    "pull first",
    "pull hf:owner/repo",
    "keep same 5000",
    "keep first Infinity",
    "pin first",
  ]);
});

test("failures pass unchanged; models that are not local are not requested from the primary process", async () => {
  const { control, done, end } = await open();
  await expect(control.unload("first", quiet())).rejects.toMatchObject({
    failure: { status: 400, message: "first stays.", code: "kept" },
  });
  await expect(control.load("same", quiet())).rejects.toThrow("The model 'same' is not a local model");
  await expect(control.unload("nobody", quiet())).rejects.toMatchObject({ failure: { status: 404 } });
  await expect(control.pull("other", quiet())).rejects.toMatchObject({ failure: { status: 404 } });
  expect(done).toEqual([]);
  end();
  await expect(control.list()).rejects.toMatchObject({ failure: { status: 503 } });
});

test("who leaves, leaves the primary's task, too, and so does a worker that dies", async () => {
  for (const how of ["leaves", "has left", "dies"]) {
    const { control, left, end, done } = await open();
    const leaving = new AbortController();
    if (how === "has left") leaving.abort();
    const loading = control.load("first", quiet(leaving.signal));
    loading.catch(() => {});
    if (how !== "has left") while (done.length === 0) await new Promise(setImmediate);
    if (how === "leaves") leaving.abort();
    if (how === "dies") end();
    await left;
    await expect(loading).rejects.toBeDefined();
  }
});
