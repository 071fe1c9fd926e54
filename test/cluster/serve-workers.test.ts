import { execFileSync } from "node:child_process";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { usableCores } from "../../src/app/processes.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { until } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { say, startScripted } from "../upstream/scripted-server.ts";
import { ask, chatBody, isAlive, linesOf, modelsOf, withoutIds, workersOf } from "./processes.ts";
import type { Arriving } from "./processes.ts";

/** Counts slowly, for as long as it is asked to. */
const counting = `
import { setTimeout as sleep } from "node:timers/promises";
export default async function* ({ messages }) {
  const count = Number(messages.at(-1).content[0].text ?? messages.at(-1).content);
  for (let at = 0; at < count; at++) {
    yield at + " ";
    await sleep(20);
  }
}
`;

interface Files {
  readonly folder: string;
  readonly model: string;
  readonly program: string;
}

function files(): Files {
  const folder = mkdtempSync(join(tmpdir(), "truewire-workers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const model = join(folder, "programmed.gguf");
  const program = join(folder, "counting.mjs");
  writeProgrammedModel(model);
  writeFileSync(program, counting);
  return { folder, model, program };
}

async function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<RunningTruewire> {
  const server = await startTruewire(["--log-format", "json", "--threads", "1", "--gpu", "off", ...args], { env });
  onTestFinished(async () => {
    await server.stop("SIGKILL");
  });
  return server;
}

async function read(answer: Arriving): Promise<string> {
  await answer.ended;
  expect(answer.end).toBe("complete");
  return answer.text;
}

interface Health {
  readonly status: string;
  readonly slots: { readonly busy: number; readonly total: number };
  readonly requests: { readonly open: number; readonly total: number };
}

async function health(server: RunningTruewire): Promise<Health> {
  return JSON.parse(await read(ask(server.url, "/health"))) as Health;
}

async function models(server: RunningTruewire): Promise<string[]> {
  const list = JSON.parse(await read(ask(server.url, "/v1/models"))) as { data: { id: string }[] };
  return list.data.map(({ id }) => id);
}

/** Whether a server may listen there now. */
function mayListen(port: number, host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
      .once("error", () => resolve(false))
      .listen(port, host, () => probe.close(() => resolve(true)));
  });
}

const endless = chatBody("programmed", "#endless", { stream: true, max_tokens: 1_000_000 });

/** Streams that run, half of them at each worker. */
async function endlessStreams(server: RunningTruewire, count: number): Promise<Arriving[]> {
  const streams: Arriving[] = [];
  for (let at = 0; at < count; at++) {
    const stream = ask(server.url, "/v1/chat/completions", endless);
    streams.push(stream);
    // One after another: connections that come at once may all go to the worker that is awake.
    await until(() => stream.text.includes("tick"), "the stream runs");
  }
  return streams;
}

describe("several workers", () => {
  test("answers of a model, a program and an upstream are those of one process, byte for byte", async () => {
    const { model, program } = files();
    const upstream = await startScripted((response, body) => say(response, body, "from above"));
    onTestFinished(() => upstream.close());
    const asked = [
      ["/v1/chat/completions", chatBody("programmed", "#plain", { stream: true })],
      ["/v1/chat/completions", chatBody("programmed", "#unicode")],
      ["/v1/chat/completions", chatBody("programmed", "#coin", { stream: true, seed: 5, max_tokens: 40 })],
      ["/v1/completions", { model: "programmed", prompt: "<|script:plain|>", max_tokens: 3, echo: true, logprobs: 2 }],
      ["/v1/chat/completions", chatBody("programmed", "Hi", { max_tokens: 100_000 })],
      // The last one of the model: which of its two slots ends last, and what the next request finds cached, is chance.
      ["/v1/chat/completions", chatBody("programmed", "#coin", { seed: 5, max_tokens: 40, n: 2, logprobs: true })],
      ["/v1/chat/completions", chatBody("counting", "12", { stream: true })],
      ["/v1/chat/completions", chatBody("counting", "12")],
      ["/v1/chat/completions", chatBody("m", "Hi", { stream: true })],
      ["/v1/chat/completions", chatBody("m", "Hi")],
      ["/v1/chat/completions", chatBody("nobody", "Hi")],
      ["/tokenize", { content: "tick tack" }],
      ["/detokenize", { tokens: [10, 20] }],
      ["/v1/models", undefined],
    ] as const;
    const answers: string[][] = [];
    for (const workers of ["1", "2"]) {
      const server = await start(["--workers", workers, "--slots", "2", model, program, upstream.url]);
      const texts: string[] = [];
      for (const [path, body] of asked) {
        const answer = ask(server.url, path, body);
        texts.push(`${path} ${withoutIds(await read(answer))} ${answer.status}`);
      }
      answers.push(texts);
      expect(await server.stop()).toBe(0);
    }
    expect(answers[1]).toEqual(answers[0]);
  });

  test("all of them answer, as one: its address is told once, and each line of the log says whose it is", async () => {
    const { folder, program } = files();
    const events = join(folder, "events.log");
    const server = await start(["--workers", "2", "--log-stream", events, program]);
    const streams = Array.from({ length: 12 }, () =>
      ask(server.url, "/v1/chat/completions", chatBody("counting", "30", { stream: true })),
    );
    for (const stream of streams) expect(await read(stream)).toMatch(/\[DONE\]\n\n$/);
    expect((await health(server)).requests.total).toBeGreaterThanOrEqual(streams.length);
    expect(await server.stop()).toBe(0);
    expect(server.stdout().match(/ANTHROPIC_BASE_URL/g)).toHaveLength(1);
    const lines = linesOf(server).filter(({ path }) => path === "/v1/chat/completions");
    expect(lines).toHaveLength(streams.length);
    expect(new Set(lines.map(({ worker }) => worker))).toEqual(new Set([1, 2]));
    const sent = readFileSync(events, "utf8").trimEnd().split("\n");
    for (const line of sent) expect(line).toMatch(/^\S+Z req_\S+ data: (\{.*\}|\[DONE\])$/);
    expect(sent.filter((line) => line.endsWith("[DONE]"))).toHaveLength(streams.length);
  });

  test("a gateway has one for each core; with a model or a program, there is one process", async () => {
    const upstream = await startScripted((response, body) => say(response, body, "Hi"));
    onTestFinished(() => upstream.close());
    // Where requests are kept, one process keeps them.
    const gateway = await start([upstream.url, "--no-inspect"]);
    expect(linesOf(gateway).filter(({ level }) => Number(level) >= 40)).toEqual([]);
    const cores = usableCores();
    if (process.platform === "linux") expect(workersOf(gateway)).toHaveLength(cores === 1 ? 0 : cores);
    expect(await gateway.stop()).toBe(0);
    const { program } = files();
    const server = await start([program]);
    if (process.platform === "linux") expect(workersOf(server)).toEqual([]);
    await read(ask(server.url, "/v1/chat/completions", chatBody("counting", "1")));
    expect(await server.stop()).toBe(0);
    expect(linesOf(server).every((line) => !("worker" in line))).toBe(true);
  });

  test("a port in use, a model that is not there: one sentence, and no process is left", async () => {
    const { folder, program } = files();
    const server = await start(["--workers", "2", program]);
    const { port } = new URL(server.url);
    // It was opened after everything had been closed, and kept the process alive behind its error.
    const slow = join(folder, "slow.mjs");
    writeFileSync(slow, `await new Promise((resolve) => setTimeout(resolve, 3000));\n${counting}`);
    await expect(startTruewire(["--port", port, "--workers", "2", slow])).rejects.toThrow(
      `exited with 1\ntruewire: Port ${port} on 127.0.0.1 is in use by another program; choose another one with --port.`,
    );
    await expect(startTruewire(["--workers", "2", "/no/model.gguf"])).rejects.toThrow(
      "exited with 1\ntruewire: The model file /no/model.gguf does not exist.",
    );
    await server.stop();
  });

  test("a client that leaves frees its slot", async () => {
    const { model } = files();
    const server = await start(["--workers", "2", "--slots", "4", model]);
    const streams = await endlessStreams(server, 4);
    await until(async () => (await health(server)).slots.busy === 4, "all slots are busy");
    for (const stream of streams) stream.leave();
    await until(async () => (await health(server)).slots.busy === 0, "all slots are free");
    await server.stop();
  });
});

describe.runIf(process.platform === "linux")("a worker that ends", () => {
  test("killed: its answers are cut, and cancelled; the other's go on; another worker takes its place", async () => {
    const { model } = files();
    const server = await start(["--workers", "2", "--slots", "8", model]);
    const streams = await endlessStreams(server, 8);
    await until(async () => (await health(server)).slots.busy === 8, "all slots are busy");
    const [victim = 0, other = 0] = workersOf(server);
    process.kill(victim, "SIGKILL");
    await until(() => streams.some(({ end }) => end === "cut"), "its streams are cut");
    await until(() => workersOf(server).length === 2 && !workersOf(server).includes(victim), "another is there");
    const going = streams.filter(({ end }) => end === undefined);
    expect(going.length).toBeGreaterThan(0);
    expect(going.length).toBeLessThan(8);
    // Nobody generates for those that are gone.
    await until(async () => (await health(server)).slots.busy === going.length, "their slots are free");
    for (const stream of going) {
      const before = stream.text.length;
      await until(() => stream.text.length > before, "it goes on");
    }
    for (const stream of streams) if (stream.end === "cut") expect(stream.text).not.toContain("[DONE]");
    await until(() => linesOf(server).some(({ msg }) => /has taken the place/.test(String(msg))), "it is said");
    const [, successor = 0] = workersOf(server).toSorted((one) => (one === other ? -1 : 1));
    expect(successor).not.toBe(other);
    for (const stream of going) stream.leave();
    for (let turn = 0; turn < 4; turn++)
      await read(ask(server.url, "/v1/chat/completions", chatBody("programmed", "Hi")));
    expect(await server.stop()).toBe(0);
    const answered = linesOf(server).filter(({ path, msg }) => path === "/v1/chat/completions" && msg === "finished");
    expect(new Set(answered.map(({ worker }) => worker))).toEqual(new Set([1, 2]));
  });

  /** It kept the connections that it was given, and took more of them. */
  test("stopped (SIGSTOP): it is ended, and another worker takes its place", async () => {
    const { program } = files();
    const server = await start([`count=${program}`, "--workers", "2"]);
    const [victim = 0] = workersOf(server);
    process.kill(victim, "SIGSTOP");
    await until(() => workersOf(server).length === 2 && !workersOf(server).includes(victim), "another is there");
    await until(() => linesOf(server).some(({ msg }) => /has taken the place/.test(String(msg))), "it is said");
    expect(linesOf(server).map(({ msg }) => msg)).toContain("a worker does not answer and is ended");
    for (let turn = 0; turn < 6; turn++) await read(ask(server.url, "/v1/chat/completions", chatBody("count", "1")));
    expect(await server.stop()).toBe(0);
  });

  /** node:cluster forgot it, and its client waited for ever. */
  test("a connection that was handed to a worker which ends before it takes it is closed", async () => {
    const { program } = files();
    const server = await start(["--workers", "2", program]);
    const [victim = 0] = workersOf(server);
    process.kill(victim, "SIGSTOP");
    const answers = Array.from({ length: 4 }, () => ask(server.url, "/health/live"));
    // One of them is with the worker that does not move; the other worker answers the rest.
    await until(() => answers.filter(({ end }) => end === "complete").length === 3, "the others are answered");
    process.kill(victim, "SIGKILL");
    await Promise.all(answers.map(({ ended }) => ended));
    expect(answers.filter(({ end }) => end === "cut")).toHaveLength(1);
    await server.stop();
  });

  test("all killed at once: the port is the same afterwards, also one that was any free one", async () => {
    const { program } = files();
    const server = await start(["--workers", "2", program]);
    const before = workersOf(server);
    for (const pid of before) process.kill(pid, "SIGKILL");
    await until(() => linesOf(server).filter(({ msg }) => /has taken the place/.test(String(msg))).length >= 2, "both");
    const answer = ask(server.url, "/v1/chat/completions", chatBody("counting", "2"));
    expect(JSON.parse(await read(answer))).toMatchObject({ choices: [{ message: { content: "0 1 " } }] });
    expect(workersOf(server)).toHaveLength(2);
    await server.stop();
  });

  /** It asked for any free port, because a URL does not tell the port of its scheme, and no worker came back. */
  test("all killed at once: the port is the same afterwards, also where it is the one of its scheme", async ({
    skip,
  }) => {
    const host = "127.0.0.80";
    if (!(await mayListen(80, host))) return skip("port 80 is not for this user, or in use");
    const { program } = files();
    const server = await start(["--host", host, "--port", "80", "--workers", "2", program]);
    for (const pid of workersOf(server)) process.kill(pid, "SIGKILL");
    await until(() => linesOf(server).filter(({ msg }) => /has taken the place/.test(String(msg))).length >= 2, "both");
    expect(await read(ask(server.url, "/health/live"))).toContain("live");
    await server.stop();
  });

  /** The place stayed empty: what could not be started had no socket to talk by, and nobody heard of that. */
  test("one that cannot be started, because no descriptor is left, is started when there are some again", async () => {
    const { program } = files();
    const server = await start(["--workers", "2", program]);
    const { pid = 0 } = server.process;
    const limitFiles = (count: number): void => {
      execFileSync("prlimit", [`--pid=${pid}`, `--nofile=${count}:4096`]);
    };
    limitFiles(4096);
    limitFiles(10);
    process.kill(workersOf(server)[0] ?? 0, "SIGKILL");
    await until(
      () => /could not be started \(spawn .*EMFILE\); another takes its place/.test(server.stderr()),
      "it is said",
    );
    limitFiles(4096);
    await until(() => linesOf(server).some(({ msg }) => /has taken the place/.test(String(msg))), "another is there");
    expect(workersOf(server)).toHaveLength(2);
    expect(await server.stop()).toBe(0);
  });

  test("an exception that nobody catches: its streams end with an error and the end mark, whole answers with a 503", async () => {
    const { folder, program } = files();
    const preload = join(folder, "throw.cjs");
    writeFileSync(preload, 'process.on("SIGUSR2", () => { throw new Error("thrown by the test"); });');
    const server = await start(["--workers", "2", program], { NODE_OPTIONS: `--require ${preload}` });
    const streams = Array.from({ length: 6 }, () =>
      ask(server.url, "/v1/chat/completions", chatBody("counting", "100000", { stream: true })),
    );
    const whole = Array.from({ length: 6 }, () =>
      ask(server.url, "/v1/chat/completions", chatBody("counting", "100000")),
    );
    await until(() => streams.every(({ text }) => text.includes("0 ")), "all run");
    await until(async () => (await health(server)).requests.open >= 12, "all are asked");
    for (const pid of workersOf(server)) process.kill(pid, "SIGUSR2");
    for (const stream of streams) {
      const events = (await read(stream)).trimEnd().split("\n\n");
      expect(JSON.parse(events.at(-2)?.slice(6) ?? "")).toMatchObject({ error: { code: "shutting_down" } });
      expect(events.at(-1)).toBe("data: [DONE]");
    }
    for (const answer of whole) {
      expect(JSON.parse(await read(answer))).toMatchObject({ error: { code: "shutting_down" } });
      expect(answer.status).toBe(503);
    }
    await until(() => linesOf(server).filter(({ msg }) => /has taken the place/.test(String(msg))).length >= 2, "both");
    await expect.poll(() => server.stderr()).toContain("Uncaught exception in a worker: Error: thrown by the test");
    expect(await read(ask(server.url, "/health/live"))).toContain("live");
    await server.stop();
  });

  test("the primary is killed: the others end within seconds, streams with an error and the end mark", async () => {
    const { model } = files();
    const server = await start(["--workers", "2", "--slots", "4", model]);
    const streams = await endlessStreams(server, 4);
    const processes = [...workersOf(server), ...modelsOf(server)];
    expect(processes).toHaveLength(3);
    server.process.kill("SIGKILL");
    for (const stream of streams) {
      const events = (await read(stream)).trimEnd().split("\n\n");
      expect(JSON.parse(events.at(-2)?.slice(6) ?? "")).toMatchObject({
        error: { message: "The process that holds the server's models has ended." },
      });
      expect(events.at(-1)).toBe("data: [DONE]");
    }
    await until(() => !processes.some(isAlive), "all are gone");
  });
});

describe("signals", () => {
  test("SIGTERM: what ends within the grace period ends, the rest is told; the code is 0", async () => {
    const { program } = files();
    const server = await start(["--workers", "2", "--grace", "10s", program]);
    const body = (count: number): object => chatBody("counting", String(count), { stream: true });
    const short = Array.from({ length: 4 }, () => ask(server.url, "/v1/chat/completions", body(40)));
    const long = Array.from({ length: 4 }, () => ask(server.url, "/v1/chat/completions", body(100_000)));
    await until(() => [...short, ...long].every(({ text }) => text.includes("0 ")), "all run");
    const stopped = server.stop();
    for (const stream of short) expect(await read(stream)).toMatch(/"finish_reason":"stop"[^]*\[DONE\]\n\n$/);
    for (const stream of long) expect(await read(stream)).toMatch(/"code":"shutting_down"[^]*\[DONE\]\n\n$/);
    expect(await stopped).toBe(0);
  });

  test.runIf(process.platform === "linux")("a second one ends everything at once", async () => {
    const { program } = files();
    const server = await start(["--workers", "2", program]);
    const stream = ask(server.url, "/v1/chat/completions", chatBody("counting", "100000", { stream: true }));
    await until(() => stream.text.includes("0 "), "it runs");
    const processes = workersOf(server);
    server.process.kill("SIGTERM");
    // Signals of one kind that come together are one: the second one must not come before the workers were told of the first.
    await until(async () => {
      const health = ask(server.url, "/health");
      await health.ended;
      return health.status !== 200;
    }, "it was heard");
    expect(await server.stop("SIGTERM")).toBe(1);
    await until(() => !processes.some(isAlive), "the workers are gone");
  });

  test("SIGHUP: all go over to the new configuration, streams go on, and a wrong one changes nothing", async () => {
    const { folder, program, model } = files();
    const config = join(folder, "truewire.yaml");
    const write = (...targets: string[]): void =>
      writeFileSync(config, `port: 0\nworkers: 2\nlogFormat: json\nmodels: ${JSON.stringify(targets)}\n`);
    write(program);
    const server = await start(["--config", config]);
    const stream = ask(server.url, "/v1/chat/completions", chatBody("counting", "150", { stream: true }));
    await until(() => stream.text.includes("0 "), "it runs");
    const readAgain = (): number => linesOf(server).filter(({ msg }) => msg === "configuration read again").length;

    write(`count=${program}`, model);
    server.process.kill("SIGHUP");
    await until(() => readAgain() === 1, "it was read again");
    for (let turn = 0; turn < 4; turn++) expect(await models(server)).toEqual(["count", "programmed"]);
    expect(await read(ask(server.url, "/v1/chat/completions", chatBody("programmed", "#plain")))).toContain("quick");
    expect(await read(stream)).toMatch(/149 [^]*\[DONE\]\n\n$/);

    writeFileSync(config, "port: 0\nworkers: 2\nmodels: 7\n");
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("nothing has changed"), "it was refused");
    write(`count=${program}`, "/no/such.gguf");
    server.process.kill("SIGHUP");
    await until(() => server.stderr().includes("The model file /no/such.gguf does not exist."), "it was refused");
    for (let turn = 0; turn < 4; turn++) expect(await models(server)).toEqual(["count", "programmed"]);
    expect(readAgain()).toBe(1);
    expect(await server.stop()).toBe(0);
  });
});
