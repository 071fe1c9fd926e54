import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { libraryFile, libraryFolders } from "../../src/engines/llama/libraries/library-folders.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import { hangMs } from "../support/hang.ts";
import { chatPrompt, openProgrammed, until, type TestEngine } from "./local-engine.ts";

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed();
});
afterAll(() => local.close());

const endless = { prompt: { kind: "text", prompts: ["<|script:endless|>"] } } as const;

function signal(engine: TestEngine, name: NodeJS.Signals): void {
  const { processId } = engine.engine as unknown as { processId: number };
  process.kill(processId, name);
}

function kill(): void {
  signal(local, "SIGKILL");
}

test("when the model's process dies, its requests end with an error, it comes back, and the next request is served", async () => {
  const events: GenerationEvent[] = [];
  let killed = false;
  for await (const batch of local.batches(endless)) {
    events.push(...batch);
    // The first batch may hold nothing but the prompt's tokens.
    if (killed || !batch.some((event) => event.type === "start")) continue;
    kill();
    killed = true;
  }
  expect(events.at(-1)).toMatchObject({
    type: "end",
    end: { kind: "engine-error", failure: { status: 503, kind: "unavailable" } },
  });
  expect(events.filter((event) => event.type === "finish")).toEqual([]);
  expect(local.engine.health().state).toBe("restarting");
  // It waits for the restart, and is served then.
  expect((await local.chat("#plain")).choices[0]?.text).toBe("The quick brown fox jumps over the lazy dog.");
  expect(local.engine.health()).toMatchObject({ state: "ready", counters: { restarts: 1 } });
});

// A model's process ended when its terminal was closed, and its answers with it, while the server went on.
test("a model's process ignores the signals of a terminal, which the server handles", async () => {
  const restarts = local.engine.health().counters?.restarts;
  for (const name of ["SIGINT", "SIGHUP", "SIGTERM"] as const) signal(local, name);
  expect((await local.chat("#plain")).end).toEqual({ kind: "done" });
  expect(local.engine.health().counters?.restarts).toBe(restarts);
});

test("a request that is left during a restart is forgotten", async () => {
  kill();
  await until(() => local.engine.health().state === "restarting");
  const leaving = new AbortController();
  const events: GenerationEvent[] = [];
  const waiting = (async () => {
    for await (const batch of local.batches({ prompt: chatPrompt("#plain") }, leaving.signal)) events.push(...batch);
  })();
  await until(() => local.engine.health().queued === 1);
  leaving.abort();
  await waiting;
  expect(events).toEqual([]);
  await until(() => local.engine.health().state === "ready");
  expect((await local.chat("#plain")).end).toEqual({ kind: "done" });
  expect(local.engine.health().counters?.generatedTokens).toBe(10);
});

test("closing lets what runs finish within the grace, and ends the rest with shutdown", async () => {
  const own = await openProgrammed();
  const short = own.chat("#plain");
  const long = own.ask(endless);
  await until(() => (own.counters().generatedTokens ?? 0) > 0);
  const closing = own.engine.close(3000);
  const late = await own.chat("#plain");
  expect(late.end).toMatchObject({ kind: "shutdown", failure: { status: 503 } });
  expect((await short).end).toEqual({ kind: "done" });
  // The endless one fills its context within the grace, or is cut off after it.
  expect(["done", "shutdown"]).toContain((await long).end.kind);
  await closing;
  expect(own.engine.health().state).toBe("closed");
  await own.close();
});

test("closing without grace ends everything at once", async () => {
  const own = await openProgrammed({ contextSize: 4096 });
  const running = own.ask(endless);
  await until(() => (own.counters().generatedTokens ?? 0) > 0);
  await own.engine.close(0);
  expect((await running).end.kind).toBe("shutdown");
  await own.close();
});

// Nothing noticed: the request and all that came after it waited for ever, and health was "ok".
test("a process that makes no progress is ended and started again; its requests end with an error", async () => {
  const own = await openProgrammed({ stepTimeout: 1000 });
  const running = own.ask(endless);
  await until(() => (own.counters().generatedTokens ?? 0) > 0);
  signal(own, "SIGSTOP");
  const waiting = own.chat("#plain");
  const { end } = await running;
  expect(end).toMatchObject({ kind: "engine-error", failure: { status: 503, retryAfterSeconds: 2 } });
  expect(JSON.stringify(end)).toContain("made no progress for 1 seconds and was ended");
  expect((await waiting).end.kind).toBe("engine-error");
  expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
  expect(own.counters().restarts).toBe(1);
  await own.close();
});

// After nine crashes the model was gone for good, although answers had succeeded in between.
test("a model that keeps crashing is tried again after longer and longer pauses; meanwhile requests are refused at once", async () => {
  const own = await openProgrammed();
  for (let crashes = 1; crashes <= 6; crashes++) {
    await until(() => own.engine.health().state === "ready");
    signal(own, "SIGKILL");
    await until(() => own.engine.health().state !== "ready");
  }
  expect(own.engine.health()).toMatchObject({
    state: "failed",
    message: "The model's process has failed 6 times in a row; it is started again after 4 seconds.",
  });
  const refused = await own.chat("#plain");
  expect(refused.end).toMatchObject({ kind: "rejected", failure: { status: 503 } });
  const { failure } = refused.end as { readonly failure: { readonly retryAfterSeconds: number } };
  expect(failure.retryAfterSeconds).toBeGreaterThan(0);
  expect(failure.retryAfterSeconds).toBeLessThanOrEqual(4);
  await until(() => own.engine.health().state === "ready");
  expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
  // The answer has cleared the slate: the next crash is the first one.
  signal(own, "SIGKILL");
  await until(() => own.engine.health().state === "restarting");
  expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
  await own.close();
});

/** The build that is tested. */
const dist = resolve(process.env.TRUEWIRE_DIST ?? "dist");

/**
 * Opens a model whose process, the first one only, does this (JavaScript) with each request that reaches its scheduler; `fail` ends the
 * scheduler's loop.
 */
async function openBroken(breaks: string, lines: string[], env: Readonly<Record<string, string>> = {}) {
  // The process is a bundle, which imports its scheduler under another name.
  const main = join(dist, "engines/llama/process/main.js");
  const [, name = "", chunk = ""] = /(\w+) as Scheduler\b[^;]* from "([^"]+)"/.exec(readFileSync(main, "utf8")) ?? [];
  const scheduler = new URL(chunk, pathToFileURL(main)).href;
  const preload = `
    const { createRequire } = await import("node:module");
    const { ${name}: Scheduler } = await import(${JSON.stringify(scheduler)});
    const { run } = Scheduler.prototype;
    let fail;
    Scheduler.prototype.run = function () {
      return Promise.race([run.call(this), new Promise((_, reject) => (fail = reject))]);
    };
    Scheduler.prototype.add = () => { ${breaks} };`;
  const before = { ...process.env };
  Object.assign(process.env, env, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
  });
  try {
    return await openProgrammed({ log: (line) => lines.push(line) });
  } finally {
    for (const name of ["NODE_OPTIONS", ...Object.keys(env)]) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  }
}

const crashed = { kind: "engine-error", failure: { status: 503, retryAfterSeconds: 2 } };

// The process told that it had failed, and was ended as if that had been asked for: nobody started it again, and requests waited for ever.
test("an error in the model's own loop is a crash like any other", async () => {
  const lines: string[] = [];
  const own = await openBroken(`fail(new Error("made up"))`, lines);
  expect((await own.chat("#plain")).end).toMatchObject(crashed);
  expect(lines).toContain("The model's process failed (Error: made up); it is started again.");
  expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
  await own.close();
});

// It let gdb look at the process first, where that is installed: for two seconds and more, in which clients waited.
if (process.platform !== "linux") console.log("skipped: the debugger is a script on the PATH of Linux");
test.skipIf(process.platform !== "linux")("a llama.cpp that gives up calls no debugger", async () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  const called = join(folder, "called");
  for (const name of ["gdb", "lldb"])
    writeFileSync(join(folder, name), `#!/bin/sh\necho called > ${called}\n`, { mode: 0o755 });
  const [libraries] = libraryFolders(false);
  const base = libraryFile(libraries?.folder ?? "", "ggml-base");
  const lines: string[] = [];
  const own = await openBroken(
    `const koffi = createRequire(${JSON.stringify(import.meta.url)})("koffi");
    koffi.load(${JSON.stringify(base)}).func("ggml_abort", "void", ["str", "int", "str", "..."])("a.cpp", 1, "made up");`,
    lines,
    { PATH: `${folder}:${process.env.PATH}` },
  );
  expect((await own.chat("#plain")).end).toMatchObject(crashed);
  expect(lines).toContain("The model's process was ended by SIGABRT; it is started again.");
  expect(existsSync(called)).toBe(false);
  expect((await own.chat("#plain")).end).toEqual({ kind: "done" });
  await own.close();
  rmSync(folder, { recursive: true, force: true });
});

// A channel that closes is noticed by the main thread only, which may be busy in llama.cpp for minutes.
test("the model's process does not outlive its parent, even while its main thread computes", async () => {
  const watch = join(dist, "engines/lifecycle/watch-process.js");
  const busy = `
    const { Worker } = require("node:worker_threads");
    new Worker(${JSON.stringify(watch)}, { workerData: { parent: process.ppid } });
    setTimeout(() => {
      process.stdout.write(String(process.pid));
      for (const end = Date.now() + ${hangMs}; Date.now() < end;);
    }, 1000);`;
  const script = `require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(busy)}], { stdio: "inherit" });`;
  const parent = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const pid = Number(await new Promise((told) => parent.stdout.once("data", told)));
  expect(isAlive(pid)).toBe(true);
  parent.kill("SIGKILL");
  await until(() => !isAlive(pid));
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
