import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runTruewire, startTruewire } from "../support/serve.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-batch-command-"));
  writeFileSync(
    join(folder, "echo.mjs"),
    `export default ({ messages }) => { const text = String(messages.at(-1).content); if (text === "bad") throw new Error("bad"); return text; };`,
  );
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const run = (...args: string[]) => runTruewire(["batch", ...args], { cwd: folder });
const resultsIn = (name: string): Record<string, unknown>[] =>
  readFileSync(join(folder, name), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("truewire batch runs every form of line, and goes on where an earlier run has stopped", async () => {
  const line = { custom_id: "a", method: "POST", url: "/v1/responses", body: { input: "one" } };
  const lines = [line, { messages: [{ role: "user", content: "two" }] }, { prompt: "bad" }];
  writeFileSync(join(folder, "in.jsonl"), lines.map((one) => JSON.stringify(one)).join("\n"));
  const first = await run("in.jsonl", "--model", "echo.mjs", "--json");
  expect([first.code, JSON.parse(first.stdout)]).toEqual([
    1,
    { total: 3, completed: 2, failed: 1, skipped: 0, output: "in.results.jsonl" },
  ]);
  const results = new Map(resultsIn("in.results.jsonl").map((one) => [one["custom_id"], one]));
  expect(results.get("a")).toMatchObject({ response: { status_code: 200, body: { object: "response" } }, error: null });
  expect(results.get("line-2")).toMatchObject({ response: { body: { choices: [{ message: { content: "two" } }] } } });
  expect(results.get("line-3")).toMatchObject({ response: { status_code: 500 } });

  // A run that was killed has torn its last line.
  appendFileSync(join(folder, "in.results.jsonl"), `{"custom_id":"line-3","resp`);
  const server = await startTruewire([join(folder, "echo.mjs")]);
  const second = await run("in.jsonl", "--url", server.url, "--model", "echo");
  await server.stop();
  expect(second.stdout).toContain("0 answered, 1 failed, 2 had an answer before, of 3");
  expect(resultsIn("in.results.jsonl")).toHaveLength(4);
});

test("truewire batch names the line that is no request, and what is missing", async () => {
  writeFileSync(join(folder, "in.jsonl"), `{"x":1}`);
  expect((await run("in.jsonl", "--model", "echo.mjs")).stderr).toContain("line 1 is no request");
  expect((await run("in.jsonl")).stderr).toContain("--model TARGET");
});

// Files of Windows begin with a byte order mark and end their lines in CRLF: the first line was refused.
test("truewire batch reads files of Windows", async () => {
  const line = (text: string): string => JSON.stringify({ messages: [{ role: "user", content: text }] });
  writeFileSync(join(folder, "in.jsonl"), `\uFEFF${line("one")}\r\n\r\n${line("two")}\r\n`);
  const { code, stdout } = await run("in.jsonl", "--model", "echo.mjs", "--json");
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { total: 2, completed: 2 }]);
});
