import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Ajv2020, type AnySchema } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Format } from "../../src/text/formats/format.ts";
import type { Engine } from "../../src/wire/core/engine.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { programmedTemplate } from "../fixtures/programmed-template.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { boundedObjectSchema } from "../support/schemas.ts";
import { drive, openBuilt } from "./local-engine.ts";
import { times } from "../support/runs.ts";

/** Generated schemas a kind. */
const count = times(8);
const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);

let engine: Engine;
let ask: ReturnType<typeof drive>["ask"];
const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const log: string[] = [];

beforeAll(async () => {
  const path = join(folder, "random.gguf");
  writeRandomModel(path, { chatTemplate: programmedTemplate([]) });
  engine = await openBuilt({ model: path, slots: 8, contextSize: 2048, log: (line) => log.push(line) });
  ({ ask } = drive(engine));
});
afterAll(async () => {
  await engine.close(0);
  rmSync(folder, { recursive: true, force: true });
});

const schemas = fc.sample(
  boundedObjectSchema(1).map(({ schema }) => schema),
  { numRuns: count, seed: 2611 },
);

/** Streamed or not, alone or twice, with logprobs or without: by turns. */
function manner(i: number): Partial<GenerationRequest> {
  return {
    stream: i % 2 === 0,
    n: 1 + (i % 5 === 0 ? 1 : 0),
    sampling: { seed: i },
    limits: { maxTokens: 900 },
    ...(i % 4 === 3 && { logprobs: { top: 2 } }),
  };
}

/** Runs all, eight at a time, and tells how many answers there were, finished, and what is wrong with those that did. */
async function run(
  request: (schema: (typeof schemas)[number], i: number) => Partial<GenerationRequest>,
  answers: (choice: Awaited<ReturnType<typeof ask>>["choices"][number]) => { reason: string; json: string[] },
): Promise<{ all: number; finished: number; faults: string[] }> {
  const result = { all: 0, finished: 0, faults: [] as string[] };
  let next = 0;
  const work = async (): Promise<void> => {
    for (let i = next++; i < schemas.length; i = next++) {
      const schema = schemas[i];
      if (schema === undefined) return;
      const generation = await ask({ ...manner(i), ...request(schema, i) });
      const validate = ajv.compile(schema as AnySchema);
      if (generation.end?.kind !== "done") result.faults.push(`${i}: ${JSON.stringify(generation.end)}`);
      for (const choice of generation.choices) {
        result.all++;
        if (choice.finish?.reason === "length") continue;
        result.finished++;
        const { reason, json } = answers(choice);
        if (choice.finish?.reason !== reason || json.length === 0)
          result.faults.push(`${i}: ${JSON.stringify(choice)}`);
        for (const text of json)
          if (!valid(validate, text)) result.faults.push(`${i}: ${text}\n${JSON.stringify(schema)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  console.info(`${schemas.length} schemas: ${result.finished} of ${result.all} answers finished`);
  return result;
}

function valid(validate: ReturnType<typeof ajv.compile>, text: string): boolean {
  try {
    return validate(JSON.parse(text)) === true;
  } catch {
    return false;
  }
}

test("noise under tool_choice required: every finished call validates, and nearly all finish", async () => {
  const { all, finished, faults } = await run(
    (parameters, i) => ({
      tools: [{ name: "f", parameters }],
      toolChoice: i % 3 === 0 ? { type: "named", name: "f" } : { type: "required" },
      parallelToolCalls: false,
    }),
    (choice) => ({ reason: "tool-calls", json: choice.toolCalls.map((call) => call.arguments) }),
  );
  expect(faults).toEqual([]);
  expect(finished / all).toBeGreaterThanOrEqual(0.95);
});

/** Calls in JSON behind a marker that noise writes now and then, more often with a bias. */
const marked: Format = {
  kind: "plain",
  id: "marked",
  calls: [{ form: "object", open: ["~"], close: ["|"], list: "one", name: ["name"], arguments: ["arguments"] }],
};

test("noise under tool_choice auto, without strict: every call that comes validates", async () => {
  const options = { model: join(folder, "random.gguf"), slots: 8, contextSize: 2048, toolFormat: marked };
  const noise = await openBuilt(options);
  const faults: string[] = [];
  let called = 0;
  let next = 0;
  const work = async (): Promise<void> => {
    for (let i = next++; i < schemas.length; i = next++) {
      const parameters = schemas[i];
      if (parameters === undefined) return;
      const { choices, end } = await drive(noise).ask({
        ...manner(i),
        tools: [{ name: "f", parameters }, { name: "g" }],
        sampling: { seed: i, textBias: [{ text: "~", bias: 6 }] },
      });
      if (end.kind !== "done") faults.push(`${i}: ${JSON.stringify(end)}`);
      const validate = {
        f: ajv.compile(parameters as AnySchema),
        g: ajv.compile({ type: "object", maxProperties: 0 }),
      };
      for (const { name, arguments: json, status } of choices.flatMap(({ toolCalls }) => toolCalls)) {
        // A call that the limit cut is what was written of it.
        if (status !== "succeeded") continue;
        called++;
        if (name !== "f" && name !== "g") faults.push(`${i}: ${name}`);
        else if (!valid(validate[name], json)) faults.push(`${i}: ${name}(${json})\n${JSON.stringify(parameters)}`);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: 8 }, work));
  } finally {
    await noise.close(0);
  }
  console.info(`${schemas.length} schemas: ${called} calls`);
  expect(faults).toEqual([]);
  expect(called).toBeGreaterThan(count / 2);
});

test("noise under response_format json_schema: every finished answer validates, and nearly all finish", async () => {
  const { all, finished, faults } = await run(
    (schema) => ({
      output: { type: "json-schema", name: "x", schema, strict: false, path: "response_format.json_schema.schema" },
    }),
    (choice) => ({ reason: "stop", json: [choice.text ?? ""] }),
  );
  expect(faults).toEqual([]);
  expect(finished / all).toBeGreaterThanOrEqual(0.95);
});
