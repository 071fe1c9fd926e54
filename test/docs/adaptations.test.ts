import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { adaptationNames } from "../../src/wire/apis/adapt/adaptation-names.ts";
import { requestsSchema } from "../../src/serve/config/requests-schema.ts";

const page = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");

test("docs/upstreams.md names every adaptation", () => {
  const text = page("upstreams.md");
  expect(adaptationNames.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

test("docs/configuration.md names every member of requests", () => {
  const text = page("configuration.md");
  expect(Object.keys(requestsSchema.shape).filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});
