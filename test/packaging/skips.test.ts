import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "truewire-skips-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the script on a report with these tests, and on a log. */
function list(files: Readonly<Record<string, readonly [suite: string, title: string, status: string][]>>, log: string) {
  const testResults = Object.entries(files).map(([name, tests]) => ({
    name: resolve(name),
    assertionResults: tests.map(([suite, title, status]) => ({ ancestorTitles: suite ? [suite] : [], title, status })),
  }));
  const [report, output] = [join(folder, "report.json"), join(folder, "log")];
  writeFileSync(report, JSON.stringify({ testResults }));
  writeFileSync(output, log);
  return new Promise<{ code: number; stdout: string }>((settle) => {
    execFile(process.execPath, ["scripts/list-skips.mjs", report, output], (error, stdout) =>
      settle({ code: error ? Number(error.code) : 0, stdout }),
    );
  });
}

const passed = ["reads", "a file", "passed"] as const;

test("skipped suites and tests are listed by file, with their reasons", async () => {
  const log = [
    "stdout | test/store.test.ts",
    "skipped: no Redis on the PATH",
    "",
    "stdout | test/page.test.ts > in a browser > a test",
    "something else",
    "skipped: no Chromium",
  ].join("\n");
  const files = {
    "test/store.test.ts": [
      ["Redis", "keeps", "skipped"],
      ["Redis", "forgets", "skipped"],
    ],
    "test/page.test.ts": [[...passed], ["", "draws", "pending"], ["reads", "a picture", "skipped"]],
    "test/other.test.ts": [[...passed]],
  } as const;
  const { code, stdout } = await list(files as never, log);
  expect(code).toBe(0);
  expect(stdout.split("\n").map((line) => line.trim())).toEqual([
    "skipped test/page.test.ts",
    "reads > a picture",
    "draws",
    "because: no Chromium",
    "skipped test/store.test.ts",
    "Redis (all tests: 2)",
    "because: no Redis on the PATH",
    "",
  ]);
});

test("a skip without a reason is an error, and nothing skipped is none", async () => {
  const silent = await list({ "test/a.test.ts": [["", "draws", "skipped"]] }, "stdout | test/b.test.ts\nskipped: x\n");
  expect(silent).toMatchObject({ code: 1, stdout: expect.stringContaining("NO REASON GIVEN") as string });
  expect(await list({ "test/a.test.ts": [[...passed]] }, "")).toEqual({ code: 0, stdout: "" });
});
