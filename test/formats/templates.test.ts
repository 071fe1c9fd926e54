import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findFormat } from "../../src/text/formats/find-format.ts";
import { learnFormat } from "../../src/text/formats/learn-format.ts";
import { readsBack, renderCalls } from "../../src/text/formats/read-back.ts";
import type { Render } from "../../src/text/formats/read-back.ts";
import { ChatTemplate } from "../../src/text/templates/chat-template.ts";
import { templateMetadata } from "../../src/text/templates/template-metadata.ts";

// The chat templates of 70 models: each alone must suffice to know how the model writes a call.
const folder = new URL("../../../shared/chat-templates/", import.meta.url).pathname;
const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".jinja")) : [];
if (names.length === 0) console.warn("templates.test: ../shared/chat-templates is absent, nothing is compared");

/** Templates whose syntax no family but the described formats explains: own quotes, headers, keys in the close. */
const notLearned = [
  "MiniMax-M3.jinja",
  "google-gemma-4-31B-it-interleaved.jinja",
  "google-gemma-4-31B-it.jinja",
  "meetkai-functionary-medium-v3.2.jinja",
  "muse-glimmer.jinja",
];

function open(name: string): { template: ChatTemplate; render: Render } {
  const source = readFileSync(join(folder, name), "utf8");
  const template = new ChatTemplate({ source, bosToken: "<bos>", eosToken: "<eos>", specialTokens: [] });
  const now = new Date(0);
  const render: Render = (messages, tools, addGenerationPrompt) =>
    template.render({ messages, tools, options: { addGenerationPrompt }, now }).text;
  return { template, render };
}

if (names.length === 0) console.log("skipped: no ../shared/chat-templates to render");
// Stands by itself, too: without templates the file held no test at all, which failed the suite where ../shared is absent.
test.skipIf(names.length === 0)("70 templates are there", () => {
  expect(names).toHaveLength(70);
});

describe.each(names)("%s", (name) => {
  const { template, render } = open(name);

  test("the format that is found reads back the calls of a rendered conversation", () => {
    const turn = renderCalls(render, 1);
    expect(turn).not.toBeNull();
    expect(readsBack(findFormat(template, templateMetadata(template.source)), turn ?? "")).toBe(true);
  });

  test("how the template writes a call can be learned from it", () => {
    const learned = learnFormat(render);
    if (learned === undefined) expect(notLearned).toContain(name);
    else expect(readsBack(learned, renderCalls(render, 1) ?? "")).toBe(true);
  });
});
