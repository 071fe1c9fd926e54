import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sleep, until } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import type { RunningTruewire } from "../support/serve.ts";
import { chat } from "../support/transports.ts";

let folder: string;
let server: RunningTruewire;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "truewire-waiting-"));
  const program = join(folder, "slow.mjs");
  writeFileSync(
    program,
    `import { existsSync } from "node:fs";
     let running = 0;
     export default function* ({ messages }) {
       running++;
       try {
         while (!existsSync(new URL("enough", import.meta.url)));
         const end = Date.now() + 500;
         while (Date.now() < end);
         yield messages.at(-1).content + " " + running;
       } finally {
         running--;
       }
     }`,
  );
  server = await startTruewire([`scripted=${program}`, "--threads", "1", "--log-level", "silent"]);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function answer(content: string): Promise<unknown> {
  const response = await fetch(`${server.url}/v1/chat/completions`, chat(content));
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  return choices[0]?.message.content;
}

async function queued(): Promise<number> {
  const health = (await (await fetch(`${server.url}/health`)).json()) as { queued: number };
  return health.queued;
}

/** The waiting run was woken when the other one was left, found its thread still computing, and slept on until another request came. */
test("a run that waits for the only thread gets it when the run before it was left", async () => {
  const leaving = new AbortController();
  const first = fetch(`${server.url}/v1/chat/completions`, { ...chat("A"), signal: leaving.signal }).catch(() => {});
  await sleep(100);
  const second = answer("B");
  await until(async () => (await queued()) === 1, "the second one waits");
  leaving.abort();
  await first;
  writeFileSync(join(folder, "enough"), "");
  expect(await second).toMatch(/^B /);
});

test("of many that wait and leave, those that stay are answered, one after the other", async () => {
  writeFileSync(join(folder, "enough"), "");
  const stay = ["A", "B", "C"].map((name) => answer(name));
  const leave = Array.from({ length: 6 }, async (_, at) => {
    const leaving = new AbortController();
    setTimeout(() => leaving.abort(), 150 * at + 10);
    await fetch(`${server.url}/v1/chat/completions`, { ...chat("gone"), signal: leaving.signal }).catch(() => {});
  });
  await Promise.all(leave);
  const answers = await Promise.all(stay);
  // Had two runs been given the thread at once, the second would have begun within the first.
  expect(answers).toEqual(["A 1", "B 1", "C 1"]);
  await until(async () => (await queued()) === 0, "none waits");
});
