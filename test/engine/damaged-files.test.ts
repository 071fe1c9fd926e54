import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { damage, type Damage } from "../support/damaged-gguf.ts";
import { waitMs } from "../support/hang.ts";
import { childrenOf, memoryOf } from "../support/processes.ts";
import { drive, openBuilt } from "./local-engine.ts";
import { isNightly, times } from "../support/runs.ts";

/** How many files are tried. */
const count = times(10);
const seed = isNightly ? Date.now() % 1_000_000 : 16;

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

writeProgrammedModel(join(folder, "programmed.gguf"));
const models = [readFileSync("models/demo/demo.gguf"), readFileSync(join(folder, "programmed.gguf"))];
rmSync(join(folder, "programmed.gguf"));

/** The memory that the model's process took at most, in MiB; 0 where the system does not tell. Neither model takes 250. */
async function withPeak<T>(work: () => Promise<T>): Promise<readonly [T, number]> {
  if (process.platform !== "linux") return [await work(), 0];
  let peak = 0;
  const timer = setInterval(() => {
    for (const pid of childrenOf(process.pid)) peak = Math.max(peak, memoryOf(pid).peak);
  }, 20);
  try {
    return [await work(), peak];
  } finally {
    clearInterval(timer);
  }
}

interface Outcome {
  readonly sentence: string;
  /** What is wrong with it; empty: nothing. */
  readonly wrong: readonly string[];
}

async function open(model: string): Promise<Outcome> {
  const opening = openBuilt({ model, contextSize: 512, slots: 1, loadTimeout: waitMs, stepTimeout: waitMs });
  const engine = await opened(opening);
  if (engine instanceof Error) {
    const { name, message } = engine;
    const wrong = [
      ...(name === "ModelOpenError" ? [] : ["not a ModelOpenError"]),
      ...(message.includes(model) ? [] : ["the file is not named"]),
      ...(/^[^\n]+\.$/.test(message) ? [] : ["not one sentence"]),
      ...(message.includes("made no progress") ? ["it hung"] : []),
    ];
    return { sentence: message.replaceAll(model, "FILE"), wrong };
  }
  try {
    const { end } = await drive(engine).complete("Hi", { limits: { maxTokens: 8 } });
    const sentence = "failure" in end ? end.failure.message : end.kind;
    return { sentence: `opened: ${sentence}`, wrong: sentence.includes("made no progress") ? ["it hung"] : [] };
  } finally {
    await engine.close(0);
  }
}

const opened = (opening: ReturnType<typeof openBuilt>) => opening.catch((error: unknown) => error as Error);

// llama.cpp ends its process for some of them, which is one sentence, too.
test("a damaged file is opened or refused with one sentence that names it", async () => {
  const path = join(folder, "damaged.gguf");
  const here = readdirSync(".").sort();
  const failures: unknown[] = [];
  const sentences = new Map<string, number>();
  for (const [number, whole] of models.entries()) {
    for (const { what, spoil } of fc.sample<Damage>(damage(whole), { numRuns: count / models.length, seed })) {
      const spoilt = spoil(whole);
      writeFileSync(path, spoilt);
      const [{ sentence, wrong }, peak] = await withPeak(() => open(path));
      const shape = sentence.replaceAll(/[\d.]*\d/g, "0").replaceAll(/'.*'/g, "'…'");
      sentences.set(shape, (sentences.get(shape) ?? 0) + 1);
      const all = [
        ...wrong,
        ...(peak > 1024 ? [`it took ${peak} MiB`] : []),
        ...(readFileSync(path).equals(spoilt) ? [] : ["the file was changed"]),
        ...(readdirSync(folder).length === 1 ? [] : [`files were written: ${readdirSync(folder).join(", ")}`]),
      ];
      if (all.length > 0) failures.push({ number, what, sentence, all });
    }
  }
  if (isNightly)
    console.log(
      `seed ${seed}\n` +
        [...sentences]
          .sort(([, a], [, b]) => b - a)
          .map(([sentence, times]) => `${times} × ${sentence}`)
          .join("\n"),
    );
  expect(failures).toEqual([]);
  expect(readdirSync(".").sort()).toEqual(here);
});
