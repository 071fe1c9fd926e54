import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCheck } from "../../src/judge/check/probe/run-check.ts";
import { ruleNamed } from "../../src/judge/check/rules/every-rule.ts";
import { geminiRules } from "../../src/judge/check/rules/gemini/gemini-rules.ts";
import { ollamaRules } from "../../src/judge/check/rules/ollama/ollama-rules.ts";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { programmedTemplate } from "../fixtures/programmed-template.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { type RunningTruewire, startTruewire } from "../support/serve.ts";
import { waitMs } from "../support/hang.ts";
import { isNightly } from "../support/runs.ts";

// Our own server under our own rules: no error and no warning, in both profiles, each demanded, over scripted text and over noise.

let folder: string;
const servers = new Map<string, RunningTruewire>();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "truewire-check-"));
  const programmed = join(folder, "programmed.gguf");
  const random = join(folder, "random.gguf");
  writeProgrammedModel(programmed);
  writeRandomModel(random, { chatTemplate: programmedTemplate([]) });
  for (const wire of ["lean", "exact"]) {
    servers.set(
      wire,
      await startTruewire(["--wire", wire, "--threads", "1", "--context-size", "2048", programmed, random]),
    );
  }
});

afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.stop()));
  await rm(folder, { recursive: true, force: true });
});

/** Noise costs three times as much: by day only the requests for texts. */
const texts = isNightly ? {} : { only: ["text", "messages/text"] };

test.each<["lean" | "exact", string, { only?: readonly string[] }]>([
  ["lean", "programmed", {}],
  ["exact", "programmed", {}],
  ["lean", "random", texts],
  ["exact", "random", texts],
])("profile %s, the %s model", async (wire, model, some) => {
  const url = `${servers.get(wire)?.url}/v1`;
  const run = await runCheck({ url, model, profile: wire, timeout: waitMs, concurrency: 2, ...some });
  const found = run.judged.flatMap(({ id, findings }) =>
    findings
      .filter(({ rule }) => ruleNamed(rule).severity !== "note")
      .map(({ rule, found: what }) => `${id}: ${rule}: ${what}`),
  );
  expect(found).toEqual([]);
  const isAll = some.only === undefined;
  expect(run.judged.length).toBeGreaterThan(isAll ? 120 : 5);
  expect(run.judged.filter(({ id }) => id.startsWith("messages/")).length).toBeGreaterThan(isAll ? 50 : 0);
});

test.each(["lean", "exact"])("Gemini's API in profile %s, its first model", async (wire) => {
  const url = `${servers.get(wire)?.url}/v1`;
  const run = await runCheck({ url, only: ["gemini"], timeout: waitMs, concurrency: 2 });
  expect(
    run.judged.flatMap(({ id, findings }) => findings.map(({ rule, found }) => `${id}: ${rule}: ${found}`)),
  ).toEqual([]);
  // The first model makes random JSON, which is cut, and no calls.
  const rules = Object.keys(geminiRules).filter((id) => !/(format|call-ids)$/.test(id));
  expect([...new Set(run.judged.flatMap(({ shown }) => shown))]).toEqual(expect.arrayContaining(rules));
});

test.each(["lean", "exact"])("Ollama's API in profile %s", async (wire) => {
  const url = `${servers.get(wire)?.url}/v1`;
  const run = await runCheck({ url, model: "programmed", only: ["ollama"], timeout: waitMs, concurrency: 2 });
  expect(
    run.judged.flatMap(({ id, findings }) => findings.map(({ rule, found }) => `${id}: ${rule}: ${found}`)),
  ).toEqual([]);
  // The random JSON of this model is cut by num_predict.
  const rules = Object.keys(ollamaRules).filter((id) => id !== "ollama/format");
  expect([...new Set(run.judged.flatMap(({ shown }) => shown))]).toEqual(expect.arrayContaining(rules));
});
