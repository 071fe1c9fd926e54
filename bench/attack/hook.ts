// Attacks on a server by its own hook: it hangs, throws, prints, returns garbage, takes memory, returns far too much.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTruewire } from "../../test/support/serve.ts";
import type { RunningTruewire } from "../../test/support/serve.ts";
import type { Attack, AttackOutcome } from "./attack.ts";
import { counted } from "./keys.ts";
import { residentMiB } from "./local-model.ts";

const program = `export default async function* () { for (let at = 0; at < 200; at++) { yield "word "; await new Promise((go) => setTimeout(go, 5)); } };`;

/** The hook does this to requests that say "attack", and to their answers. */
async function attacked(behaviour: string, status: number, requests = 8): Promise<AttackOutcome> {
  const folder = mkdtempSync(join(tmpdir(), "truewire-attack-"));
  writeFileSync(join(folder, "p.mjs"), program);
  const attack = `request: (request) => JSON.stringify(request.prompt).includes("attack") ? (${behaviour})(request) : undefined`;
  writeFileSync(join(folder, "guard.mjs"), `export default { ${attack}, answer: ({ text }) => text };`);
  const config = { port: 0, hook: { module: "./guard.mjs", timeout: "2s" }, models: ["./p.mjs"] };
  writeFileSync(join(folder, "truewire.json"), JSON.stringify(config));
  const server = await startTruewire(["--config", join(folder, "truewire.json")], { cwd: folder });
  const failures: string[] = [];
  const began = performance.now();
  try {
    await chat(server, "warm");
    const { pid = 0 } = server.process;
    const before = residentMiB(pid);
    let worst = before;
    const watch = setInterval(() => (worst = Math.max(worst, residentMiB(pid))), 100);
    const stream = chat(server, "other");
    const answers = await Promise.all(Array.from({ length: requests }, () => chat(server, "attack")));
    const other = await stream;
    clearInterval(watch);
    const words = other.text.split("word").length - 1;
    if (other.status !== 200 || words !== 200) failures.push(`another client's stream has ${words} of 200 chunks`);
    // On a slow machine, what takes long is too late (503) before it fails.
    const wrong = answers.filter((one) => one.status !== status && one.status !== 503);
    if (wrong.length > 0)
      failures.push(`${wrong.length} attacked requests were answered ${wrong[0]?.status}, not ${status}`);
    if (answers.some(({ text }) => /guard\.mjs|node:internal| at .*:\d+/.test(text)))
      failures.push("a stack trace went to a client");
    const { status: after } = await chat(server, "again");
    if (after !== 200) failures.push(`afterwards, a client was answered ${after}`);
    if (server.process.exitCode !== null) failures.push("the server has ended");
    return {
      answered: counted(answers.map((one) => one.status)),
      others: `a stream of ${words} chunks, complete`,
      memoryMiB: [before, worst, residentMiB(pid)],
      tookMs: performance.now() - began,
      failures,
    };
  } finally {
    await server.stop("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function chat({ url }: RunningTruewire, text: string): Promise<{ status: number; text: string }> {
  const body = JSON.stringify({ model: "p", stream: text === "other", messages: [{ role: "user", content: text }] });
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return { status: response.status, text: await response.text() };
}

const rows: readonly (readonly [name: string, behaviour: string, status: number])[] = [
  ["hangs in a loop", "() => { for (;;); }", 503],
  ["never resolves", "() => new Promise(() => {})", 503],
  ["throws", `() => { throw new Error("inner words"); }`, 500],
  [
    "throws later, outside of its promise",
    `() => { setTimeout(() => { throw new Error("late"); }); return new Promise(() => {}); }`,
    500,
  ],
  ["ends its thread", "() => process.exit(1)", 500],
  ["prints 2 MB", `() => { for (let at = 0; at < 20; at++) console.log("x".repeat(1e5)); }`, 200],
  ["returns garbage", `() => ({ model: 5, prompt: [null] })`, 500],
  ["takes all the memory it gets", `() => { const all = []; for (;;) all.push(new Array(1e6).fill(1.5)); }`, 500],
  ["returns a prompt of 100 MB", `(request) => ({ ...request, extra: { text: "x".repeat(1e8) } })`, 500],
];

export const attacks: readonly Attack[] = rows.map(([what, behaviour, status]) => ({
  name: `a hook that ${what}`,
  run: () => attacked(behaviour, status),
}));
