import { expect, test } from "vitest";
import { apis } from "../../src/judge/between/facts.ts";
import { runBetween } from "../../src/judge/between/run-between.ts";
import { freePort } from "../support/redis-server.ts";
import { startTranslator } from "./translator.ts";

const pairs = apis.flatMap((client) => apis.map((vendor) => [client, vendor] as const));

test.each(pairs)("Truewire between clients of %s and a vendor of %s", async (client, vendor) => {
  const vendorPort = await freePort();
  const { url, close } = await startTranslator(`http://127.0.0.1:${vendorPort}`, vendor);
  const run = await runBetween({ url, client, vendor, key: "k", timeoutMs: 60_000, vendorPort, model: "m" });
  await close(0);
  const found = run.findings
    .filter(({ severity }) => severity !== "note")
    .map(({ severity, key, message, facts }) => `${severity} ${key}: ${message} (${facts.join()})`);
  expect(found).toEqual([]);
});
