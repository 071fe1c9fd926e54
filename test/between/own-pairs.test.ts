import { expect, test } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import { apis, roots } from "../../src/judge/between/facts.ts";
import { runBetween } from "../../src/judge/between/run-between.ts";
import { freePort } from "../support/redis-server.ts";

/** The vendor is as strict as OpenAI, at another address: this is what Truewire knows of that. */
const openai = {
  contentParts: true,
  customTools: true,
  systemMessages: "anywhere",
  instructionRole: "any",
  reasoningEffort: true,
} as const;

const pairs = apis.flatMap((client) => apis.map((vendor) => [client, vendor] as const));

test.each(pairs)("Truewire between clients of %s and a vendor of %s", async (client, vendor) => {
  const vendorPort = await freePort();
  const host = `http://127.0.0.1:${vendorPort}`;
  const gateway = await createServer({
    port: 0,
    logLevel: "silent",
    models: [
      {
        kind: "upstream",
        name: "up",
        url: `${host}${roots[vendor]}`,
        api: vendor,
        key: "k",
        models: ["m"],
        ...(vendor === "chat" && { requests: openai }),
      },
    ],
  });
  const run = await runBetween({
    url: gateway.url,
    client,
    vendor,
    key: "k",
    timeoutMs: 60_000,
    vendorPort,
    model: "m",
  });
  await gateway.close(0);
  const found = run.findings
    .filter(({ severity }) => severity !== "note")
    .map(({ severity, key, message, facts }) => `${severity} ${key}: ${message} (${facts.join()})`);
  expect(found).toEqual([]);
});
