import { describe, expect, test } from "vitest";
import { type Api, apis } from "../../src/judge/between/facts.ts";
import { type BetweenRun, runBetween } from "../../src/judge/between/run-between.ts";
import { freePort } from "../support/redis-server.ts";
import { defects } from "./mutations.ts";
import { type Mutation, startPassThrough } from "./pass-through.ts";

async function runPassThrough(
  api: Api,
  mutation: Mutation,
  options: { readonly quick?: boolean; readonly only?: readonly string[] },
): Promise<BetweenRun> {
  const vendorPort = await freePort();
  const gateway = await startPassThrough(() => `http://127.0.0.1:${vendorPort}`, mutation);
  const own = { url: gateway.url, client: api, vendor: api, key: "k", timeoutMs: 60_000, vendorPort, model: "m" };
  const run = await runBetween({ ...own, ...options });
  gateway.close();
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
