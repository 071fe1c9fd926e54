import { execFileSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** Each built file, and when it was written. */
function written(): Record<string, number> {
  const files = readdirSync("dist", { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [join(parentPath, name), statSync(join(parentPath, name)).mtimeMs]),
  );
}

// Each build wrote all files again, and a server that started meanwhile (in another test) read half of one: "Unexpected end of input".
test("building what is built writes nothing", { timeout: 60_000 }, () => {
  const before = written();
  execFileSync("npm", ["run", "--silent", "build"], { shell: process.platform === "win32" });
  expect(Object.keys(before)).toContain(join("dist", "cli", "main.js"));
  expect(written()).toEqual(before);
});
