import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { forPeople, jsonLog, LogLines } from "../../src/serve/server/logger.ts";

/** Colours are the terminal's business. */
function plain(line: string): string {
  // oxlint-disable-next-line no-control-regex -- colours are control sequences
  return line.replaceAll(/\u001B\[\d+m/g, "");
}

describe("lines of JSON", () => {
  const lines: string[] = [];
  const open = (level: "debug" | "info" | "error" | "silent", common?: string): ReturnType<typeof jsonLog> => {
    lines.length = 0;
    return jsonLog((line) => lines.push(line), level, common);
  };
  const read = (): unknown[] => lines.map((line) => JSON.parse(line) as unknown);
  const time = expect.any(Number) as unknown;

  test("a line has the level's number, the time in milliseconds, the fields, and the message last", () => {
    const before = Date.now();
    open("debug", ',"worker":2').warn({ req: "req_1", status: undefined, names: ["a"], text: 'é"\n' }, 'a "message"');
    expect(lines).toEqual([expect.stringMatching(/^\{"level":40,"time":\d+,"worker":2,"req":"req_1",.*\}\n$/)]);
    expect(lines[0]?.slice(0, -1)).not.toContain("\n");
    const [line] = read() as { time: number }[];
    expect(line).toEqual({ level: 40, time, worker: 2, req: "req_1", names: ["a"], text: 'é"\n', msg: 'a "message"' });
    expect(line?.time).toBeGreaterThanOrEqual(before);
    expect(line?.time).toBeLessThanOrEqual(Date.now());
  });

  test("a line without fields", () => {
    open("debug").info({}, "ready");
    expect(read()).toEqual([{ level: 30, time, msg: "ready" }]);
  });

  test.each([
    ["debug", [20, 30, 40, 50]],
    ["info", [30, 40, 50]],
    ["error", [50]],
    ["silent", []],
  ] as const)("with level %s, the log writes the levels %j", (level, written) => {
    const log = open(level);
    const names = ["debug", "info", "warn", "error"] as const;
    for (const name of names) log[name]({}, name);
    expect(read()).toEqual(written.map((number) => expect.objectContaining({ level: number }) as unknown));
    expect(names.filter((name) => log.isLevelEnabled?.(name))).toHaveLength(written.length);
  });

  test("fields that JSON cannot represent are written as a text", () => {
    const cycle: Record<string, unknown> = { at: "x" };
    cycle["self"] = cycle;
    const log = open("info");
    log.info(cycle, "one");
    log.info({ size: 12n }, "two");
    expect(read()).toEqual([
      { level: 30, time, fields: expect.stringContaining("Circular") as unknown, msg: "one" },
      { level: 30, time, fields: "{ size: 12n }", msg: "two" },
    ]);
  });
});

test("a line for people: time, what happened, the request, then the rest", () => {
  const time = new Date(2026, 0, 2, 3, 4, 5).getTime();
  const line = JSON.stringify({
    level: 30,
    time,
    msg: "finished",
    method: "POST",
    path: "/v1/x",
    status: 200,
    model: "m",
  });
  expect(plain(forPeople(line))).toBe("03:04:05 finished POST /v1/x status=200 model=m\n");
});

test("what a client made up cannot steer the terminal; a cause keeps its lines", () => {
  const line = JSON.stringify({ level: 50, time: 0, msg: "failed", error: "\u001B[2Jgone\n", cause: "Error\n  at x" });
  expect(plain(forPeople(line))).toContain(" error=\\u001b[2Jgone\\u000a cause=Error\n  at x\n");
});

// Once, only the fields were looked through, though a message may quote what a model wrote.
test("a message cannot steer the terminal either, and keeps its lines", () => {
  const line = JSON.stringify({ level: 40, time: 0, msg: "it said \u009b2J\r\nand more" });
  expect(plain(forPeople(line))).toContain(" it said \\u009b2J\\u000d\nand more\n");
});

import type * as FileSystem from "node:fs";

/** Is told what is written at once. */
let heard: (piece: string) => void = () => {};
/** How the disk answers; undefined: as it is. */
let failure: string | undefined;
/** How often it has failed. */
let failed = 0;

vi.mock("node:fs", async (original) => {
  const real = await original<typeof FileSystem>();
  const write = (fd: number, buffer: Buffer, done: (error: Error | null, written: number) => void): void => {
    heard(buffer.toString());
    if (failure === undefined) real.write(fd, buffer, done);
    else setImmediate(fail, done, failure);
  };
  const fail = (done: (error: Error, written: number) => void, code: string): void => {
    done(Object.assign(new Error(`${code}: no`), { code }), 0);
    failed++;
  };
  return { ...real, write };
});

let folder: string;
let fd: number;
let lines: LogLines;
const lost: string[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-lines-"));
  fd = openSync(join(folder, "log"), "a");
  lines = new LogLines(fd);
  lost.length = 0;
  lines.onLost = (count, why) => lost.push(`${count} ${why}`);
  failure = undefined;
  failed = 0;
});
afterEach(() => {
  closeSync(fd);
  rmSync(folder, { recursive: true });
});

const written = (): string => readFileSync(join(folder, "log"), "utf8");

test("lines are written in order, including those that arrive during a write", async () => {
  const all = Array.from({ length: 1000 }, (_, at) => `line ${at} é\n`);
  for (const line of all) lines.write(line);
  await expect.poll(written).toBe(all.join(""));
});

// Under load, each request's line was a write of its own, which cost a quarter of a gateway's CPU time.
test("the first line is written at once, and those that follow it shortly are written together", async () => {
  const pieces: string[] = [];
  heard = (piece) => pieces.push(piece);
  lines.write("one\n");
  await expect.poll(written).toBe("one\n");
  for (const line of ["two\n", "three\n", "four\n"]) {
    lines.write(line);
    await new Promise((soon) => setImmediate(soon));
  }
  await expect.poll(written).toBe("one\ntwo\nthree\nfour\n");
  heard = () => {};
  expect(pieces[0]).toBe("one\n");
  expect(pieces.length).toBeLessThan(4);
});

// A full disk ended the server with its next line.
test("with a full disk, lines wait; lost lines are counted and reported, and the others are complete", async () => {
  failure = "ENOSPC";
  const long = `${"x".repeat(1024 * 1024 - 1)}\n`;
  // One is being written, four wait.
  for (let i = 0; i < 8; i++) lines.write(long);
  await expect.poll(() => failed).toBeGreaterThan(1);
  failure = undefined;
  await expect.poll(() => written().length).toBe(5 * long.length);
  expect(lost).toEqual(["3 ENOSPC: no"]);
  lines.write("after\n");
  await expect.poll(written).toMatch(/\nafter\n$/);
});

test("nothing is written to a pipe without a reader", async () => {
  failure = "EPIPE";
  lines.write("one\n");
  await expect.poll(() => failed).toBe(1);
  failure = undefined;
  lines.write("two\n");
  await new Promise((wait) => setTimeout(wait, 50));
  expect(written()).toBe("");
});

test("if several processes write, a write has whole lines of limited size, and a longer line is a write of its own", async () => {
  const shared = new LogLines(fd, 20);
  const pieces: string[] = [];
  heard = (piece) => pieces.push(piece);
  const all = ["one\n", "éééé éééé\n", "two\n", "three\n", `${"long ".repeat(10)}\n`, "four\n"];
  for (const line of all) shared.write(line);
  await expect.poll(written).toBe(all.join(""));
  heard = () => {};
  expect(pieces).toEqual([all[0], all[1], `${all[2]}${all[3]}`, all[4], all[5]]);
});
