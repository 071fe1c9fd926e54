import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

// The demo model's scores are worth something only while its evaluation is the same and no request of it is in its training.

const folder = fileURLToPath(new URL("../../models/demo/", import.meta.url));
const hasPython = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 10))"]).status === 0;
if (!hasPython) console.log("skipped: the demo model's evaluation wants Python 3.10");

test.skipIf(!hasPython)(
  "the evaluation is what its script writes, and training holds none of it",
  () => {
    const temporary = mkdtempSync(join(tmpdir(), "truewire-"));
    try {
      const out = join(temporary, "eval.jsonl");
      const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
      const run = spawnSync("python3", ["heldout.py", "--out", out, "--against", "1500"], {
        cwd: folder,
        env,
        encoding: "utf8",
      });
      expect(run.stderr).toBe("");
      expect(run.stdout).toMatch(/^0 of 631 held-out requests in \d{4} training ones$/m);
      expect(readFileSync(out, "utf8") === readFileSync(join(folder, "eval.jsonl"), "utf8")).toBe(true);
    } finally {
      rmSync(temporary, { recursive: true });
    }
  },
  60_000,
);
