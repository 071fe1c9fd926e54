import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { writeGguf } from "../fixtures/gguf-writer.ts";
import { openEncoder, type OpenEncoder } from "../../src/engines/llama/vision/open-encoder.ts";

vi.mock(import("../../src/engines/llama/vision/mtmd-api.ts"), async (original) => ({
  ...(await original()),
  findMtmd: () => null,
}));

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let lines: string[];
beforeEach(() => void (lines = []));

const mmproj = join(folder, "m.mmproj.gguf");
const missing = /^Images need llama\.cpp's libmtmd, which is not installed here: npm install @fugood\/node-llama-/;

function open(isLazy: boolean, options: { mmproj?: string } = {}): Promise<OpenEncoder | null> {
  writeGguf(
    mmproj,
    {
      "general.architecture": { type: "string", value: "clip" },
      "clip.has_vision_encoder": { type: "bool", value: true },
      ...(isLazy && { "truewire.lazy": { type: "bool", value: true } }),
    },
    [],
  );
  const model = { path: join(folder, "m.gguf"), rowLength: 64, threads: 1 };
  return openEncoder(model, { gpu: "off", ...options }, (line) => void lines.push(line));
}

// The demo model has a projector, and most installations have no libmtmd: they need no warning.
test("without libmtmd, a lazy projector is not used, and only a request with an image learns what to install", async () => {
  expect(await open(true)).toEqual({ encoder: null, hint: expect.stringMatching(missing) });
  expect(lines).toEqual([]);
});

test("without libmtmd, another projector is logged, and one that is configured is refused", async () => {
  expect(await open(false)).toEqual({ encoder: null, hint: expect.stringMatching(missing) });
  expect(lines).toEqual([
    expect.stringContaining(`The projector ${mmproj} is not used, so the model takes text only: `),
  ]);
  await expect(open(true, { mmproj })).rejects.toThrow(missing);
});
