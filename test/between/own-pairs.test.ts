import { expect, test } from "vitest";
import { apis } from "../../src/judge/between/facts.ts";
import { runBetween } from "../../src/judge/between/run-between.ts";
import { isNightly } from "../support/runs.ts";
import { startPassThrough } from "./pass-through.ts";
import { startTranslator } from "./translator.ts";

const pairs = apis.flatMap((client) => apis.map((vendor) => [client, vendor] as const));

test.each(pairs)("Truewire between clients of %s and a vendor of %s", async (client, vendor) => {
  let vendorUrl = "";
  const behind = await startPassThrough(() => vendorUrl);
  const { url, close } = await startTranslator(behind.url, vendor);
  const own = { url, client, vendor, key: "k", timeoutMs: 60_000, vendorPort: 0, model: "m" };
  // All facts at night.
  const run = await runBetween({ ...own, quick: !isNightly, onVendor: (at) => (vendorUrl = at) });
  await close(0);
  behind.close();
  const found = run.findings
    .filter(({ severity }) => severity !== "note")
    .map(({ severity, key, message, facts }) => `${severity} ${key}: ${message} (${facts.join()})`);
  expect(found).toEqual([]);
});
