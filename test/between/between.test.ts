import { describe, expect, test } from "vitest";
import { type Api, apis } from "../../src/judge/between/facts.ts";
import { type BetweenRun, runBetween } from "../../src/judge/between/run-between.ts";
import { defects } from "./mutations.ts";
import { type Mutation, startPassThrough } from "./pass-through.ts";
import { type TranslatedDefect, translatedDefects } from "./translated-mutations.ts";
import { startTranslator } from "./translator.ts";

interface RunOptions {
  readonly quick?: boolean;
  readonly only?: readonly string[];
}

async function runPassThrough(api: Api, mutation: Mutation, options: RunOptions): Promise<BetweenRun> {
  let vendorUrl = "";
  const gateway = await startPassThrough(() => vendorUrl, mutation);
  const own = { url: gateway.url, client: api, vendor: api, key: "k", timeoutMs: 60_000, vendorPort: 0, model: "m" };
  const run = await runBetween({ ...own, ...options, onVendor: (url) => (vendorUrl = url) });
  gateway.close();
  return run;
}

/** Truewire translates between the client and the vendor, and the defect is on one side of it. */
async function runTranslated({ client, vendor, side, only, ...mutation }: TranslatedDefect): Promise<BetweenRun> {
  let vendorUrl = "";
  const behind = await startPassThrough(() => vendorUrl, side === "vendor" ? mutation : {});
  const truewire = await startTranslator(behind.url, vendor);
  const front = await startPassThrough(() => truewire.url, side === "client" ? mutation : {});
  const own = { url: front.url, client, vendor, key: "k", timeoutMs: 60_000, vendorPort: 0, model: "m" };
  const onVendor = (url: string): void => void (vendorUrl = url);
  const run = await runBetween({ ...own, ...(only ? { only } : { quick: true }), onVendor });
  front.close();
  await truewire.close(0);
  behind.close();
  return run;
}

function lines({ findings }: BetweenRun): string[] {
  return findings.map(({ severity, key, message, facts }) => `${severity} ${key}: ${message} (${facts.join()})`);
}

test.each(apis)("a gateway that passes %s on as it is has no findings", async (api) => {
  expect(lines(await runPassThrough(api, {}, {}))).toEqual([]);
});

describe("defects of gateways", () => {
  test.each(defects)("$api: a gateway that $name", async ({ api, finds, only, ...mutation }) => {
    const run = await runPassThrough(api, mutation, only ? { only } : { quick: true });
    const keys = run.findings.map(({ key }) => key);
    expect(
      keys.filter((key) => key.startsWith(finds)),
      keys.join("\n"),
    ).not.toEqual([]);
  });
});

describe("defects of gateways that translate", () => {
  test.each(translatedDefects)("$client to $vendor: a gateway that $name", async (defect) => {
    const { findings } = await runTranslated(defect);
    const keys = findings.map(({ key, severity }) => `${key}: ${severity}`);
    const found = findings.filter(({ key, severity }) => key.startsWith(defect.finds) && severity !== "note");
    expect(found, keys.join("\n")).not.toEqual([]);
  });
});
