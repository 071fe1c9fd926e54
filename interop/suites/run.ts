import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { serveConfig } from "../../test/sessions/sources.ts";
import { inPlace } from "../place.ts";
import { keepSuite } from "../report.ts";
import type { SuiteFailure } from "../report.ts";
import { melleaModels } from "./mellea.ts";
import type { Suite } from "./suite.ts";

const embeddings = inPlace("models", "minilm.gguf");

/**
 * Runs test suites of other projects over one Truewire, prints each test that fails, counts tests and writes the results. A failure is
 * unexplained where its suite has no reason for it.
 */
export async function runSuites(
  chosen: readonly Suite[],
): Promise<{ passed: number; failed: number; unexplained: number }> {
  const program = resolve("interop/fixtures/capable.ts");
  const aliases = ["other", ...melleaModels];
  const embedder = existsSync(embeddings) ? [{ kind: "local", name: "minilm", path: embeddings }] : [];
  const truewire = await serveConfig({ models: [{ kind: "program", name: "capable", program, aliases }, ...embedder] });
  const place = { url: truewire.url, capable: "capable", embeddings: embedder[0]?.name };
  const count = { passed: 0, failed: 0, unexplained: 0 };
  try {
    for (const suite of chosen) {
      const version = suite.version();
      if (version === undefined) {
        console.log(`skipped ${suite.name}: it is not installed (npm run interop -- install ${suite.id})`);
        continue;
      }
      const cases = await suite.run(place).catch((error: unknown) => {
        count.unexplained++;
        console.log(`✗ ${suite.name}: ${String(error)}`);
        return [];
      });
      if (cases.length === 0) continue;
      const passed = cases.filter(({ outcome }) => outcome === "passed").length;
      const skipped = cases.filter(({ outcome }) => outcome === "skipped").length;
      const failures = cases
        .filter(({ outcome }) => outcome === "failed")
        .map(({ name, detail }): SuiteFailure => {
          const [, whose, why] = suite.reasons.find(([test]) => name.includes(test)) ?? [];
          return { test: name, whose: whose ?? null, why: why ?? plain(detail) };
        });
      for (const { test, whose, why } of failures)
        console.log(`✗ ${suite.name}: ${test} (${whose ?? "unexplained"}: ${why})`);
      console.log(`${suite.name} ${version}: ${passed} passed, ${failures.length} failed, ${skipped} skipped`);
      count.passed += passed;
      count.failed += failures.length;
      count.unexplained += failures.filter(({ whose }) => whose === null).length;
      keepSuite(suite, version, { passed, skipped, failures });
    }
  } finally {
    await truewire.stop();
  }
  return count;
}

const plain = (text: string): string => text.replaceAll(/\s+/g, " ").slice(0, 400);
