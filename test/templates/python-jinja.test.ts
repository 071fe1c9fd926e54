import { existsSync, readdirSync, readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { hasJinja } from "./ask-jinja.ts";
import { languageDifferences, promptDifferences, type Difference } from "./compare-with-python.ts";
import { generatedConversations } from "./generated-conversations.ts";

// Published templates over generated conversations, held against Python's own Jinja as Transformers sets it up: the same bytes come out.
// `npm run interop -- templates` does the same over more conversations, with Transformers itself.

const folder = new URL("../../../shared/chat-templates/", import.meta.url);
const files = existsSync(folder) && hasJinja ? readdirSync(folder) : [];
const waivers = JSON.parse(
  readFileSync(new URL("../waivers/python-templates.json", import.meta.url), "utf8"),
) as Readonly<Record<string, string>>;

if (files.length === 0)
  console.log("skipped: no ../shared/chat-templates, or no python3 with jinja2, to compare templates with");

describe.skipIf(files.length === 0)("Python's Jinja (skipped without ../shared, or without python3 and jinja2)", () => {
  const sources = files.map((file) => readFileSync(new URL(file, folder), "utf8"));
  let ofLanguage: readonly (readonly Difference[])[] = [];
  let ofPrompts: readonly (readonly Difference[])[] = [];

  beforeAll(() => {
    ofLanguage = languageDifferences(sources, generatedConversations(20, 46, { images: true }));
    ofPrompts = promptDifferences(sources, generatedConversations(5, 47, { images: false }));
  });

  test.each(files.map((file, index) => [file, index] as const))("%s", (file, index) => {
    const different = [...(ofLanguage[index] ?? []), ...(ofPrompts[index] ?? [])];
    if (file in waivers) expect(different, "the waiver is needed no more").not.toEqual([]);
    else expect(different).toEqual([]);
  });
});
