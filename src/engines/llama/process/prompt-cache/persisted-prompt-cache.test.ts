import fc from "fast-check";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SequenceState } from "./sequence.ts";
import { readStates, writeStates, type StateFiles } from "./persisted-prompt-cache.ts";

let folder: string;
let files: StateFiles;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
  files = { folder: join(folder, "cache"), name: "a/b", identity: { size: 5, slots: 2 } };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function state(seed: number, length = 20): SequenceState {
  return {
    tokens: Array.from({ length }, (_, at) => at * seed),
    adapters: "1,0.5",
    images: [{ start: 2, count: 4, positions: seed }],
    truncatableFrom: seed,
    promptLength: seed,
    checkpoints: [
      { length: 5, state: Uint8Array.of(seed, 1) },
      { length: 9, state: Uint8Array.of(seed, 2, 3) },
    ],
    blocks: [8, length].map((end) => ({
      length: end,
      state: Uint8Array.from({ length: 50 }, (_, at) => at ^ seed ^ end),
    })),
  };
}

/** As plain data. */
function plain(states: Iterable<SequenceState>): unknown {
  return [...states].map((one) => ({
    ...one,
    blocks: one.blocks.map(({ length, state }) => [length, [...state]]),
    checkpoints: one.checkpoints.map(({ length, state }) => [length, [...state]]),
  }));
}

function read(from: StateFiles): { states: SequenceState[]; ignored: string[] } {
  const ignored: string[] = [];
  const states = [...readStates(from, (_, why) => void ignored.push(why))];
  return { states, ignored };
}

test("states are read as they were written, the newest first, and once", () => {
  const written = [state(3), state(4, 70)];
  expect(writeStates(files, written)).toBe(2);
  const { states, ignored } = read(files);
  expect(plain(states)).toEqual(plain(written));
  expect(ignored).toEqual([]);
  expect(readdirSync(files.folder)).toEqual([]);
});

test("other users may not read the files, and previous files are removed", () => {
  writeStates(files, [state(1), state(2), state(3)]);
  writeFileSync(join(files.folder, "a%2fb.7.state.tmp"), "");
  writeStates({ ...files, name: "a" }, [state(5)]);
  writeStates(files, [state(4)]);
  expect(readdirSync(files.folder).toSorted()).toEqual(["a%2fb.0.state", "a.0.state"]);
  if (process.platform !== "win32") {
    expect(statSync(join(files.folder, "a.0.state")).mode & 0o777).toBe(0o600);
    expect(statSync(files.folder).mode & 0o777).toBe(0o700);
  }
  expect(plain(read(files).states)).toEqual(plain([state(4)]));
  expect(plain(read({ ...files, name: "a" }).states)).toEqual(plain([state(5)]));
});

test("what was written for another model or with other settings is not read, and stays", () => {
  writeStates(files, [state(1)]);
  const { states, ignored } = read({ ...files, identity: { size: 6, slots: 2 } });
  expect(states).toEqual([]);
  expect(ignored).toEqual(["it was written for another model or with other settings"]);
  expect(read(files).states).toHaveLength(1);
});

test("a folder that does not exist has no states", () => {
  expect(read({ ...files, folder: join(folder, "nowhere") })).toEqual({ states: [], ignored: [] });
});

// llama.cpp could crash when it restores a damaged state.
test("for every file with a byte changed or cut off: it is reported as damaged", () => {
  writeStates(files, [state(7)]);
  const file = join(files.folder, "a%2fb.0.state");
  const whole = readFileSync(file);
  const place = fc.nat(whole.length - 1);
  fc.assert(
    fc.property(place, fc.integer({ min: 1, max: 255 }), fc.boolean(), (at, change, cuts) => {
      const bytes = Buffer.from(cuts ? whole.subarray(0, at) : whole);
      if (!cuts) bytes[at] = (bytes[at] ?? 0) ^ change;
      writeFileSync(file, bytes);
      const { states, ignored } = read(files);
      expect(states).toEqual([]);
      expect(ignored).toEqual(["it is damaged"]);
    }),
  );
});

// On file systems of Windows and macOS, the model "A" overwrote the files of "a".
test("names that differ in case alone have files of names that differ, and none has a character that Windows refuses", () => {
  for (const name of ["Qwen", "qwen", "a:b*c?", "Ä"]) writeStates({ ...files, name }, [state(1)]);
  const names = readdirSync(files.folder);
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(4);
  expect(names.filter((name) => /[<>:"/\\|?*]/.test(name))).toEqual([]);
});
