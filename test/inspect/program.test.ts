import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, afterAll, expect, test } from "vitest";
import type { InspectedRequest } from "../../src/judge/inspect/inspected-request.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { json } from "../support/transports.ts";
import { listed } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-inspect-"));
const path = join(folder, "crashing.mjs");
const program = `function lookUp(table) {
  return table.rows.length;
}
export default async function* ({ messages }) {
  yield "Looking. ";
  if (messages.at(-1).content === "crash") lookUp({});
}
`;

let server: RunningTruewire;
beforeAll(async () => {
  writeFileSync(path, program);
  server = await startTruewire([path, "--port", "0"]);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(content: string): Promise<{ readonly text: string; readonly id: string }> {
  const body = { model: "crashing", messages: [{ role: "user", content }], stream: true };
  const response = await fetch(`${server.url}/v1/chat/completions`, json(body));
  return { text: await response.text(), id: response.headers.get("x-request-id") ?? "" };
}

// The place was in the log only, and the page showed the message alone.
test("a program that throws: Inspect has the stack, which the client does not get", async () => {
  const { text, id } = await ask("crash");
  expect(text).not.toContain("crashing.mjs");
  const shown = (await (await fetch(`${server.url}/admin/requests/${id}`)).json()) as InspectedRequest;
  expect(shown.outcome).toBe("failed");
  expect(shown.stack).toMatch(/^TypeError[^]*at lookUp \(.*crashing\.mjs[^]*:2:\d+\)/);
});

test("a program that counts no tokens: the list has an estimate, marked as one", async () => {
  const { id } = await ask("What is the weather in Lisbon today?");
  const request = (await listed(server.url)).requests.find((one) => one.id === id);
  expect(request).toMatchObject({ outcome: "finished", estimated_prompt_tokens: expect.any(Number) as number });
  expect(request?.estimated_prompt_tokens).toBeGreaterThan(8);
  expect(request).not.toHaveProperty("prompt_tokens");
});
