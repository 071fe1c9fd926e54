import { beforeAll, describe, expect, test } from "vitest";
import type { Exchange } from "../../src/judge/check/rules/exchange.ts";
import { probes } from "../../src/judge/check/probe/probes.ts";
import { hasOfficialSchemas, type OfficialSchemas, readOfficialSchemas } from "./official-schemas.ts";

if (!hasOfficialSchemas) console.log("skipped: no ../shared/openapi to compare the probes with");

const schemas: Partial<Record<Exchange["endpoint"], string>> = {
  chat: "CreateChatCompletionRequest",
  completions: "CreateCompletionRequest",
  embeddings: "CreateEmbeddingRequest",
  responses: "CreateResponse",
};

// `answer/status` reported servers that refused what the specification does not allow: null for four members, and in responses/history
// an answer of the assistant without its id.
describe.skipIf(!hasOfficialSchemas)("OpenAI's own schemas of requests", () => {
  let official: OfficialSchemas;
  beforeAll(() => {
    official = readOfficialSchemas();
  });

  test("accept every request that must be answered with 200", () => {
    const checked: string[] = [];
    for (const { id, endpoint, expects, method, body } of probes) {
      const schema = schemas[endpoint];
      // A server may also refuse what the specification allows; these probes are to be no less valid.
      if (schema === undefined || method !== "POST" || body === undefined || typeof expects === "object") continue;
      if (id.includes("unknown-member")) continue;
      checked.push(id);
      expect(official.rejected(schema, JSON.parse(JSON.stringify(body("gpt-4o")))), id).toEqual([]);
    }
    expect(checked.length).toBeGreaterThan(90);
  });
});
