import { describe, expect, test } from "vitest";
import { dailyPart } from "../support/runs.ts";
import { type Api, apis } from "../../src/judge/between/facts.ts";
import { type BetweenRun, runBetween } from "../../src/judge/between/run-between.ts";
import { times } from "../support/runs.ts";
import { defects, without } from "./mutations.ts";
import { type Mutation, startPassThrough } from "./pass-through.ts";
import { sessionDefects } from "./session-mutations.ts";
import { type TranslatedDefect, translatedDefects } from "./translated-mutations.ts";
import { startTranslator } from "./translator.ts";

interface RunOptions {
  readonly quick?: boolean;
  readonly only?: readonly string[];
  readonly seeds?: readonly number[];
  readonly confirm?: number;
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

test.each(apis)(
  "generated sessions of %s are legal for the vendor, and arrive with all that agents send",
  async (api) => {
    const seen: string[] = [];
    const seeds = Array.from({ length: times(3) }, (_, at) => at + 1);
    const requestText = (text: string): string => {
      seen.push(text);
      return text;
    };
    const run = await runPassThrough(api, { requestText }, { only: ["session"], seeds });
    expect(lines(run)).toEqual([]);
    expect(run.results.length).toBe(seeds.length * 6);
    // The first two seeds, which every run has, show each of these.
    const first = seen.filter((text) => /fact:session-[12]-5/.test(text)).join("\n");
    for (const part of partsOfSessions[api]) expect(first).toMatch(part);
  },
);

const partsOfSessions: Readonly<Record<Api, readonly RegExp[]>> = {
  chat: [/("type":"function".{1,200}){2}/, /developer/, /image_url/, /file_data/, /no such city/],
  responses: [/encrypted_content/, /developer/, /input_image/, /input_file/, /output":\[/, /no such city/],
  messages: [
    /"signature"/,
    /"is_error":true/,
    /"image"/,
    /"document"/,
    /tool_result.{1,300}tool_result/,
    /cache_control/,
  ],
  ollama: [/"thinking"/, /"images"/, /German/, /no such city/],
  gemini: [/thoughtSignature/, /"error"/, /functionResponse.{1,300}"parts"/, /pdf/, /German/],
};

test("a finding is looked for in other requests: what one request alone shows is a note", async () => {
  const always: Mutation = { request: without("temperature") };
  const found = async (mutation: Mutation): Promise<unknown[]> => {
    const { findings, results } = await runPassThrough("chat", mutation, {
      only: ["temperature", "top-p"],
      confirm: 3,
    });
    // The requests that confirm it are no rows of their own.
    expect(results.map(({ fact }) => fact.id)).toEqual(["temperature", "top-p"]);
    return findings.map(({ key, severity, again }) => [key, severity, again]);
  };
  expect(await found(always)).toEqual([["request lost sampling.temperature", "error", { of: 3, seen: 3 }]]);
  let count = 0;
  const once: Mutation = {
    request: (body) => (body["temperature"] !== undefined && count++ === 0 ? without("temperature")(body) : body),
  };
  expect(await found(once)).toEqual([["request lost sampling.temperature", "note", { of: 3, seen: 0 }]]);
});

describe("defects of gateways", () => {
  test.each(dailyPart([...defects, ...sessionDefects], 4))(
    "$api: a gateway that $name",
    async ({ api, finds, only, ...mutation }) => {
      const run = await runPassThrough(api, mutation, only ? { only } : { quick: true });
      const keys = run.findings.map(({ key }) => key);
      expect(
        keys.filter((key) => key.startsWith(finds)),
        keys.join("\n"),
      ).not.toEqual([]);
    },
  );
});

describe("defects of gateways that translate", () => {
  test.each(dailyPart(translatedDefects, 4))("$client to $vendor: a gateway that $name", async (defect) => {
    const { findings } = await runTranslated(defect);
    const keys = findings.map(({ key, severity }) => `${key}: ${severity}`);
    const found = findings.filter(({ key, severity }) => key.startsWith(defect.finds) && severity !== "note");
    expect(found, keys.join("\n")).not.toEqual([]);
  });
});
