import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startTruewire, type RunningTruewire } from "../support/serve.ts";
import { programmedTemplate } from "../fixtures/programmed-template.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-defaults-"));
const file = join(folder, "coin.gguf");
const scripts = {
  coin: {
    draw: [
      [" heads", 0.51],
      [" tails", 0.49],
    ],
    afterwards: "repeat",
  },
  greeting: { say: "Hello!" },
} as const;
const effort = '{%- if reasoning_effort is not defined %}\n  {%- set reasoning_effort = "medium" %}\n{%- endif %}';
writeProgrammedModel(file, {
  scripts,
  chatTemplate: effort + programmedTemplate(Object.keys(scripts)),
  metadata: {
    "general.sampling.temp": { type: "f32", value: 0 },
    "general.sampling.top_p": { type: "f32", value: 0.95 },
  },
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function toss(server: RunningTruewire, more: object = {}): Promise<ReadonlySet<string>> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "coin", messages: [{ role: "user", content: "#coin" }], max_tokens: 40, ...more }),
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return new Set(choices[0]?.message.content.trim().split(" "));
}

async function listed(server: RunningTruewire): Promise<Record<string, Record<string, unknown>>> {
  const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as {
    data: { default_parameters: object; truewire: { default_origins: Record<string, string> } }[];
  };
  const values = Object.entries(data[0]?.default_parameters ?? {});
  return Object.fromEntries(
    values.map(([name, value]) => [name, { [data[0]?.truewire.default_origins[name] ?? ""]: value }]),
  );
}

/** Serves the model with these `defaults` of the configuration. */
async function withServer(defaults: object, use: (server: RunningTruewire) => Promise<void>): Promise<void> {
  const config = join(folder, "truewire.json");
  const models = [{ kind: "local", name: "coin", path: file, threads: 1, gpu: "off", defaults }];
  writeFileSync(config, JSON.stringify({ port: 0, models }));
  const server = await startTruewire(["--config", config]);
  await use(server).finally(() => server.stop());
}

// llama-server applies what the file recommends; here, requests were sampled with temperature 1.
test("requests that do not set sampling are sampled as the file recommends, and the list of models says so", async () => {
  await withServer({}, async (server) => {
    expect(await toss(server)).toEqual(new Set(["heads"]));
    expect(await toss(server, { temperature: 1, seed: 1 })).toEqual(new Set(["heads", "tails"]));
    expect(await listed(server)).toMatchObject({
      temperature: { file: 0 },
      top_p: { file: 0.95 },
      top_k: { engine: 0 },
      reasoning_effort: { template: "medium" },
    });
  });
});

test("the configuration overrides the file", async () => {
  await withServer({ temperature: 1, seed: 1, maxTokens: 50 }, async (server) => {
    expect(await toss(server)).toEqual(new Set(["heads", "tails"]));
    expect(await listed(server)).toMatchObject({
      temperature: { configuration: 1 },
      top_p: { file: 0.95 },
      max_completion_tokens: { configuration: 50 },
    });
  });
});
