import { execFileSync } from "node:child_process";
import { createServer } from "node:net";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { keyOf } from "../keys/support.ts";
import { readExposition, total } from "../observe/read-metrics.ts";
import { until } from "../support/scripted-engine.ts";
import { runTruewire } from "../support/serve.ts";
import { storesNothing } from "../support/stores-nothing.ts";
import { answeredBy, ask, chat, isAlive, linesOf, read, startHolding, startWorkers, workersOf } from "./processes.ts";
import type { Arriving, Workers } from "./processes.ts";

const path = "/v1/chat/completions";
const isLinux = process.platform === "linux";
if (!isLinux) console.log("skipped: workers are found through /proc, on Linux");

async function start(settings: object = {}, env: Record<string, string> = {}) {
  const upstream = await startHolding();
  return { upstream, server: await startWorkers(upstream.url, { ...storesNothing, ...settings }, env) };
}

/** Streams that have begun, half of them at each worker. */
async function holdStreams(server: Workers, count: number): Promise<Arriving[]> {
  const streams: Arriving[] = [];
  for (let at = 0; at < count; at++) {
    const stream = ask(server.url, path, chat("hold", { stream: true }));
    streams.push(stream);
    // One after another: connections that come at once may all go to one worker.
    await until(() => stream.text.includes("begun"), "the stream has begun");
  }
  return streams;
}

function countOf(server: Workers, text: RegExp): number {
  return linesOf(server).filter(({ msg }) => text.test(String(msg))).length;
}

test("two processes answer on one port; the start is printed once, and lines of both logs are whole", async () => {
  const { server } = await start({ logStream: "events.log" });
  const asked = Array.from({ length: 12 }, () => ask(server.url, path, chat("Hi", { stream: true })));
  for (const answer of asked) expect(await read(answer)).toMatch(/"content":"Hi"[^]*\[DONE\]\n\n$/);
  if (isLinux) expect(workersOf(server)).toHaveLength(2);
  expect(await server.stop()).toBe(0);
  expect(server.stdout().match(/ANTHROPIC_BASE_URL/g)).toHaveLength(1);
  expect(answeredBy(server, path)).toEqual(new Set([1, 2]));
  const events = readFileSync(join(dirname(server.file), "events.log"), "utf8")
    .trimEnd()
    .split("\n");
  for (const line of events) expect(line).toMatch(/^\S+Z req_\S+ data: (\{.*\}|\[DONE\])$/);
  expect(events.filter((line) => line.endsWith("[DONE]"))).toHaveLength(asked.length);
});

test("without the setting there is one process", async () => {
  const upstream = await startHolding();
  const server = await startWorkers(upstream.url, { workers: undefined });
  if (isLinux) expect(workersOf(server)).toEqual([]);
  await read(ask(server.url, path, chat("Hi")));
  expect(await server.stop()).toBe(0);
  expect(linesOf(server).every((line) => !("worker" in line))).toBe(true);
});

test("each scrape has the metrics of all workers, with their numbers", async () => {
  const { server } = await start();
  for (let at = 0; at < 10; at++) await read(ask(server.url, path, chat("Hi")));
  for (let at = 0; at < 2; at++) {
    const metrics = readExposition(await read(ask(server.url, "/metrics")));
    const ofWorkers = ["1", "2"].map((worker) =>
      total(metrics, "gen_ai_server_request_duration_seconds_count", { worker }),
    );
    expect(ofWorkers).toEqual([5, 5]);
    expect(metrics.samples.every(({ labels }) => labels["worker"] !== undefined)).toBe(true);
  }
});

test("Inspect is off, streams are not resumed, and the admin API names the way to reload", async () => {
  const { server } = await start();
  expect(JSON.parse(await read(ask(server.url, "/admin/requests")))).toMatchObject({ error: { code: "inspect_off" } });
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-truewire-resume": "60s" },
    body: JSON.stringify(chat("Hi", { stream: true })),
  });
  expect(response.headers.get("x-truewire-resume")).toBeNull();
  await response.text();
  const reload = ask(server.url, "/admin/reload", {});
  expect(await read(reload)).toContain(`Send SIGHUP to their parent process ${server.process.pid}`);
  expect(reload.status).toBe(400);
});

describe.runIf(isLinux)("a worker that ends", () => {
  test("killed: its streams are cut; the other's go on, another takes its place, and no other request fails", async () => {
    const { server, upstream } = await start();
    const streams = await holdStreams(server, 6);
    const [victim = 0] = workersOf(server);
    process.kill(victim, "SIGKILL");
    await until(() => countOf(server, /was ended by SIGKILL; another takes its place/) === 1, "its end is logged");
    for (let at = 0; at < 10 || countOf(server, /has taken the place/) === 0; at++)
      expect(await read(ask(server.url, path, chat("Hi")))).toContain('"content":"Hi"');
    upstream.release();
    await Promise.all(streams.map(({ ended }) => ended));
    expect(streams.map(({ end }) => end).toSorted()).toEqual(["complete", "complete", "complete", "cut", "cut", "cut"]);
    for (const { end, text } of streams) expect(text.endsWith("data: [DONE]\n\n")).toBe(end === "complete");
    expect(workersOf(server)).toHaveLength(2);
    expect(workersOf(server)).not.toContain(victim);
    expect(await server.stop()).toBe(0);
  });

  /** node:cluster forgot it, and its client waited for ever. */
  test("a connection that was handed to a worker which ends before it accepts it is closed", async () => {
    const { server } = await start();
    const [victim = 0] = workersOf(server);
    process.kill(victim, "SIGSTOP");
    const answers = Array.from({ length: 4 }, () => ask(server.url, "/health/live"));
    // One of them is with the worker that is stopped; the other worker answers the rest.
    await until(() => answers.filter(({ end }) => end === "complete").length === 3, "the others are answered");
    process.kill(victim, "SIGKILL");
    await Promise.all(answers.map(({ ended }) => ended));
    expect(answers.filter(({ end }) => end === "cut")).toHaveLength(1);
  });

  test("all killed at once: the port is the same afterwards, also one that was any free one", async () => {
    const { server } = await start();
    for (const pid of workersOf(server)) process.kill(pid, "SIGKILL");
    await until(() => countOf(server, /has taken the place/) === 2, "both are replaced");
    expect(await read(ask(server.url, path, chat("Hi")))).toContain('"content":"Hi"');
  });

  /** It asked for any free port, because a URL does not tell the port of its scheme, and no worker came back. */
  test("all killed at once: the port is the same afterwards, also if it is the one of its scheme", async ({ skip }) => {
    const host = "127.0.0.80";
    if (!(await mayListen(80, host))) return skip("port 80 is not for this user, or in use");
    const { server } = await start({ host, port: 80 });
    for (const pid of workersOf(server)) process.kill(pid, "SIGKILL");
    await until(() => countOf(server, /has taken the place/) === 2, "both are replaced");
    expect(await read(ask(server.url, "/health/live"))).toContain("live");
  });

  /** The place stayed empty: a process that could not be started reported nothing. */
  test("one that cannot be started, because no descriptor is left, is started when there are some again", async () => {
    const { server } = await start();
    const limitFiles = (count: number): void => {
      execFileSync("prlimit", [`--pid=${server.process.pid}`, `--nofile=${count}:4096`]);
    };
    limitFiles(4096);
    limitFiles(10);
    process.kill(workersOf(server)[0] ?? 0, "SIGKILL");
    await until(
      () => countOf(server, /could not be started \(spawn .*EMFILE\); another takes its place/) > 0,
      "EMFILE",
    );
    limitFiles(4096);
    await until(() => countOf(server, /has taken the place/) === 1, "another one serves");
    expect(workersOf(server)).toHaveLength(2);
  });

  test("an uncaught exception: its streams end with an error and the end mark", async () => {
    const { server } = await start(
      {},
      { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(thrower)}` },
    );
    const streams = await holdStreams(server, 4);
    for (const pid of workersOf(server)) process.kill(pid, "SIGUSR2");
    for (const stream of streams) expectShutDown(await read(stream));
    await until(() => countOf(server, /has taken the place/) === 2, "both are replaced");
    expect(server.stderr()).toContain("Uncaught exception in a worker: Error: thrown by the test");
    expect(await read(ask(server.url, "/health/live"))).toContain("live");
  });

  test("the parent process is killed: streams end with an error and the end mark, and the workers end", async () => {
    const { server } = await start();
    const streams = await holdStreams(server, 4);
    const workers = workersOf(server);
    server.process.kill("SIGKILL");
    for (const stream of streams) expectShutDown(await read(stream));
    await until(() => !workers.some(isAlive), "all have ended");
  });
});

const thrower = 'process.on("SIGUSR2", () => { throw new Error("thrown by the test"); });';

function expectShutDown(text: string): void {
  const events = text.trimEnd().split("\n\n");
  expect(JSON.parse(events.at(-2)?.slice(6) ?? "")).toMatchObject({ error: { code: "shutting_down" } });
  expect(events.at(-1)).toBe("data: [DONE]");
}

/**
 * Resolves when no worker accepts connections any more. A connection that came at that moment was neither accepted nor closed, and its client
 * waited until the streams of all others had ended.
 */
async function portIsClosed(server: Workers): Promise<void> {
  await until(async () => {
    const probes = Array.from({ length: 20 }, () => ask(server.url, "/health/live"));
    await Promise.all(probes.map(({ ended }) => ended));
    return probes.every(({ end }) => end === "cut");
  }, "the port is closed");
}

/** Whether a server may listen there now. */
function mayListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
      .once("error", () => resolve(false))
      .listen(port, host, () => probe.close(() => resolve(true)));
  });
}

describe("signals", () => {
  test("SIGTERM: streams at all workers end by themselves, and the exit code is 0", async () => {
    const { server, upstream } = await start({ grace: "2m" });
    const streams = await holdStreams(server, 4);
    const stopped = server.stop();
    await portIsClosed(server);
    upstream.release();
    for (const stream of streams) expect(await read(stream)).toMatch(/"finish_reason":"stop"[^]*\[DONE\]\n\n$/);
    expect(await stopped).toBe(0);
  });

  test("SIGTERM: streams that are longer than the grace period end with an error", async () => {
    const { server } = await start({ grace: "0s" });
    const streams = await holdStreams(server, 4);
    const stopped = server.stop();
    for (const stream of streams) expectShutDown(await read(stream));
    expect(await stopped).toBe(0);
  });

  test.runIf(isLinux)("a second one ends everything at once", async () => {
    const { server } = await start({ grace: "2m" });
    await holdStreams(server, 1);
    const workers = workersOf(server);
    server.process.kill("SIGTERM");
    // Signals of one kind that come together are one.
    await portIsClosed(server);
    expect(await server.stop("SIGTERM")).toBe(1);
    await until(() => !workers.some(isAlive), "the workers have ended");
  });

  test("SIGHUP: all workers serve the new configuration, streams go on, and a wrong one changes nothing", async () => {
    const { server, upstream } = await start();
    const streams = await holdStreams(server, 2);
    const models = async (): Promise<string[]> => {
      const { data } = JSON.parse(await read(ask(server.url, "/v1/models"))) as { readonly data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    const model = { kind: "upstream", name: "up", url: upstream.url };
    server.configure({ models: [{ ...model, models: ["m", "other"] }] });
    server.process.kill("SIGHUP");
    await until(() => countOf(server, /^configuration read again$/) === 1, "it was read again");
    for (let at = 0; at < 4; at++) expect(await models()).toEqual(["m", "other"]);
    upstream.release();
    for (const stream of streams) expect(await read(stream)).toMatch(/\[DONE\]\n\n$/);

    server.configure({ models: [model], store: "memory" });
    server.process.kill("SIGHUP");
    // The store cannot change; the keys may.
    await until(() => countOf(server, /^configuration read again$/) === 2, "it was read again");
    server.configure({ keys: [{ ...keyOf("alice").entry, concurrency: 2 }] });
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("nothing has changed"), "it was refused");
    expect(server.stderr()).toContain(`${server.file}:2: workers: keys have limits`);
    for (let at = 0; at < 4; at++) expect(await models()).toEqual(["m"]);
  });

  test.runIf(isLinux)("a worker that is replaced serves what was read, not what is in the file by now", async () => {
    const { server } = await start();
    writeFileSync(server.file, "port: 0\nmodels: 7\n");
    process.kill(workersOf(server)[0] ?? 0, "SIGKILL");
    await until(() => countOf(server, /has taken the place/) === 1, "another one serves");
    for (let at = 0; at < 4; at++) expect(await read(ask(server.url, path, chat("Hi")))).toContain('"content":"Hi"');
  });
});

describe("refused at the start", () => {
  function refusal(settings: object): Promise<string> {
    return startWorkers("http://127.0.0.1:9/v1", settings).then(
      () => "it started",
      (error: unknown) => (error as Error).message,
    );
  }

  test("several workers that would store, with the line of the file", async () => {
    const message = await refusal({});
    expect(message).toMatch(
      /^truewire exited with 1\ntruewire: \S+truewire\.yaml:2: workers: responses and turns are stored, .* Set store: redis:.* or set workers: 1\n$/,
    );
    const [, file = ""] = /truewire: (\S+):2:/.exec(message) ?? [];
    const { code, stderr } = await runTruewire(["config", "check", file]);
    expect(message).toBe(`truewire exited with 1\n${stderr}`);
    expect(code).toBe(1);
  });

  test("keys with limits in their own file, without Redis", async () => {
    const upstream = await startHolding();
    const server = await startWorkers(upstream.url, storesNothing);
    const keysFile = join(dirname(server.file), "keys.yaml");
    writeFileSync(keysFile, `- ${JSON.stringify({ ...keyOf("alice").entry, requestsPerMinute: 3 })}\n`);
    expect(await refusal({ ...storesNothing, keysFile })).toMatch(
      /truewire\.yaml:2: workers: keys have limits, .* Set sharedLimits: redis:/,
    );
  });

  test("a local model, with the option of the command line", async () => {
    const { code, stdout, stderr } = await runTruewire(["serve", "models/demo/demo.gguf", "--workers", "2"]);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^truewire: --workers 2: each process would load the local model .*, or set workers: 1\n$/);
    expect(code).toBe(1);
  });

  test("a port that is in use, in one sentence", async () => {
    const { server, upstream } = await start();
    const { port } = new URL(server.url);
    const settings = { ...storesNothing, port: Number(port) };
    await expect(startWorkers(upstream.url, settings)).rejects.toThrow(
      `exited with 1\ntruewire: Port ${port} on 127.0.0.1 is in use by another program; choose another one with --port.`,
    );
  });
});
