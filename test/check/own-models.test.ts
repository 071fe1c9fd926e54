import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { listen, type Listening } from "../support/listen.ts";
import { runTruewire, startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";

// The list of a server that has everything in it, under our own rules for lists: what is not loaded, what has a context, what has none.

const folder = mkdtempSync(join(tmpdir(), "truewire-lists-"));
let upstream: Listening;
const servers = new Map<string, RunningTruewire>();

beforeAll(async () => {
  upstream = await listen((_, response) =>
    response.end('{"object":"list","data":[{"id":"far","max_model_len":32768},{"id":"plain","object":"model"}]}'),
  );
  writeProgrammedModel(join(folder, "local.gguf"));
  writeFileSync(join(folder, "program.mjs"), "export default () => 'Hello';\n");
  for (const wire of ["lean", "exact"]) {
    const config = [
      "port: 0",
      `wire: ${wire}`,
      "models:",
      "  - { kind: local, path: local.gguf, load: lazy, contextSize: 4096, aliases: [gpt-4o-mini] }",
      `  - { kind: upstream, name: there, url: "${upstream.url}/v1" }`,
      "  - program.mjs",
    ];
    const file = join(folder, `${wire}.yaml`);
    writeFileSync(file, `${config.join("\n")}\n`);
    servers.set(wire, await startTruewire(["--config", file]));
  }
});
afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.stop()));
  await upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each(["lean", "exact"])("profile %s: a model of every kind, and nothing to object to", async (wire) => {
  const url = `${servers.get(wire)?.url ?? ""}/v1`;
  const { data } = (await (await fetch(`${url}/models`)).json()) as {
    data: readonly { id: string; context_length?: number }[];
  };
  // OpenAI's own list has no context.
  const inLean = (tokens: number): number | undefined => (wire === "lean" ? tokens : undefined);
  expect(data.map(({ id, context_length: length }) => [id, length])).toEqual([
    ["local", inLean(4096)],
    ["far", inLean(32768)],
    ["plain", undefined],
    ["program", undefined],
    ["gpt-4o-mini", inLean(4096)],
  ]);
  for (const model of ["local", "far", "program"]) {
    const args = ["check", url, "--only", "models", "--model", model, "--profile", wire, "--format", "json"];
    const { code, stdout } = await runTruewire([...args, "--max-warnings", "0"]);
    const { rules } = JSON.parse(stdout) as { rules: readonly { id: string; status: string }[] };
    expect(rules.filter(({ status }) => status !== "passed" && status !== "not shown")).toEqual([]);
    const judged = rules.filter(({ id }) => id.startsWith("models/"));
    expect(judged.map(({ status }) => status)).toEqual(["passed", "passed", "passed"]);
    expect(code).toBe(0);
  }
});
