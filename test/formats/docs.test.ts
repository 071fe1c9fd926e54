import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { knownNames } from "../../src/text/formats/known.ts";
import { parseMessage } from "../../src/text/formats/parse-job.ts";
import { readFormat } from "../../src/text/formats/read-format.ts";

const text = readFileSync(new URL("../../docs/formats.md", import.meta.url), "utf8");
const list = text.slice(text.indexOf("## What is known"));

test("the list names every known format, and no other", () => {
  const named = [...list.matchAll(/`([\w.-]+)`/g)].map(([, name]) => name);
  expect(named.sort()).toEqual([...knownNames].sort());
});

test("the descriptions in the examples are right, and read", () => {
  const blocks = [...text.matchAll(/```yaml\n([^]*?)```/g)].map(([, yaml]) => parse(yaml ?? "") as Example);
  const [first, second] = blocks.map((block) => readFormat(block.models[0]?.toolFormat));
  if (!first || !second) throw new Error("an example is missing");
  const call = [{ name: "f", arguments: '{"a":1}' }];
  expect(parseMessage({ format: first, text: '<act>{"name":"f","arguments":{"a":1}}</act>' }).calls).toEqual(call);
  const tags = '<calls><call name="f"><arg name="a">1</arg></call></calls>';
  expect(parseMessage({ format: second, text: tags }).calls).toEqual(call);
});

interface Example {
  readonly models: readonly { readonly toolFormat: unknown }[];
}
