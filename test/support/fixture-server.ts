import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { startTruewire } from "./serve.ts";
import type { RunningTruewire } from "./serve.ts";

export interface FixtureServer extends RunningTruewire {
  /** The API's base URL. */
  readonly baseURL: string;
  close(): Promise<void>;
}

/** `truewire serve` on the programmed model, named "programmed", under real llama.cpp with one thread. */
export async function serveFixture(...args: readonly string[]): Promise<FixtureServer> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-fixture-"));
  const model = join(folder, "programmed.gguf");
  writeProgrammedModel(model);
  const server = await startTruewire([model, "--threads", "1", "--gpu", "off", ...args]);
  return {
    ...server,
    baseURL: `${server.url}/v1`,
    async close() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What scripts of the programmed model say (test/fixtures/scripts.ts). */
export const said = {
  plain: "The quick brown fox jumps over the lazy dog.",
  unicode: "Zürich grüßt 日本 mit 😀 und 👩‍🚀.",
  toolAnswer: "It is sunny in Paris, with 21 degrees.",
} as const;
