import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeRandomAdapter } from "../fixtures/random-kinds.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { startTruewire, type RunningTruewire } from "../support/serve.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
let server: RunningTruewire;
beforeAll(async () => {
  const [model, one, two] = ["model", "one", "two"].map((name) => join(folder, `${name}.gguf`)) as [
    string,
    string,
    string,
  ];
  writeRandomModel(model);
  writeRandomAdapter(one, 1);
  writeRandomAdapter(two, 2);
  const sizes = ["--threads", "1", "--gpu", "off", "--context-size", "1024"];
  server = await startTruewire([model, "--lora", one, "--lora", two, "--port", "0", ...sizes]);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function complete(lora?: unknown): Promise<{ status: number; text: string; param: unknown }> {
  const body = { model: "model", prompt: "ba fa ".repeat(20), max_tokens: 8, temperature: 0, lora };
  const response = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const told = (await response.json()) as { choices?: { text: string }[]; error?: { param: unknown } };
  return { status: response.status, text: told.choices?.[0]?.text ?? "", param: told.error?.param };
}

test("clients see which adapters there are, and not where their files are", async () => {
  const all = [
    { id: 0, model: "model", path: "one.gguf", scale: 1 },
    { id: 1, model: "model", path: "two.gguf", scale: 1 },
  ];
  expect(await (await fetch(`${server.url}/lora-adapters`)).json()).toEqual(all);
  expect(await (await fetch(`${server.url}/v1/lora-adapters?model=model`)).json()).toEqual(all);
  expect((await fetch(`${server.url}/lora-adapters?model=other`)).status).toBe(404);
});

test("a request says how much of which adapter it wants", async () => {
  const own = await complete();
  const none = await complete([]);
  const one = await complete([{ id: 0, scale: 1 }]);
  expect(new Set([own.text, none.text, one.text]).size).toBe(3);
  expect(
    await complete([
      { id: 0, scale: 1 },
      { id: 1, scale: 1 },
    ]),
  ).toEqual(own);
});

test.each([
  [[{ id: 2, scale: 1 }], "lora[0].id"],
  [[{ id: 0 }], "lora[0].scale"],
  [[{ id: -1, scale: 1 }], "lora[0].id"],
  ["one", "lora"],
])("%j is refused", async (lora, param) => {
  expect(await complete(lora)).toMatchObject({ status: 400, param });
});
