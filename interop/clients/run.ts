import { startTruewire } from "../../test/support/serve.ts";
import { runClient } from "./client.ts";
import type { RealClient } from "./client.ts";

/** Runs the programs of clients over one Truewire, which serves the scripted model, and counts their scenarios. */
export async function runClients(clients: readonly RealClient[]): Promise<{ passed: number; failed: number }> {
  const truewire = await startTruewire(["scripted=./interop/fixtures/scripted.ts"]);
  const count = { passed: 0, failed: 0 };
  try {
    for (const client of clients) {
      const version = client.version();
      if (version === undefined) {
        console.log(`skipped ${client.name}: it is not installed (npm run interop -- install ${client.id})`);
        continue;
      }
      for (const { scenario, ok, detail } of await runClient(client, truewire.url, "scripted")) {
        if (ok !== null) count[ok ? "passed" : "failed"]++;
        const mark = ok === null ? "–" : ok ? "✓" : "✗";
        console.log(`${mark} ${client.name} ${version}: ${scenario} (${detail.replaceAll(/\s+/g, " ").slice(0, 400)})`);
      }
    }
  } finally {
    await truewire.stop();
  }
  return count;
}
