import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { Gbnf } from "../../../../test/support/gbnf.ts";
import type { Tool } from "../../../wire/core/message.ts";
import type { Format } from "../format.ts";
import { formatNamed } from "../known.ts";
import { callGrammar } from "./call-grammar.ts";

const folder = "../shared/vectors";

interface Vector {
  readonly id: string;
  readonly source: string;
  readonly format: string;
  readonly tier: string;
  readonly text: string;
  readonly prefix?: string;
  readonly tools?: readonly { readonly function?: Tool }[];
  readonly expect: { readonly content?: string | null; readonly tool_calls?: readonly { readonly name: string }[] };
}

/** Texts that a grammar of these tools must take: what llama.cpp's tests have models write, from the first call's opener on. */
function callTexts(): { id: string; format: Format; tools: readonly Tool[]; text: string; prefix: string }[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl") && !name.startsWith("_"))
    .flatMap((name) => readFileSync(`${folder}/${name}`, "utf8").split("\n").filter(Boolean))
    .map((line) => JSON.parse(line) as Vector)
    .filter(
      ({ tier, source, expect }) =>
        tier === "hard" && source.startsWith("llama") && (expect.tool_calls ?? []).length > 0,
    )
    .flatMap(({ id, format: name, text, prefix = "", expect, tools: declared = [] }) => {
      const format = formatNamed(name);
      if (format === undefined) return [];
      const tools = [...new Set((expect.tool_calls ?? []).map((call) => call.name))].map(
        (name) => declared.find((tool) => tool.function?.name === name)?.function ?? { name },
      );
      return [{ id, format, tools, text: fromFirstCall(format, text), prefix }];
    });
}

function fromFirstCall(format: Format, text: string): string {
  if (format.kind === "routed") return text;
  const openers = [...(format.section?.open ?? []), ...format.calls.flatMap((call) => call.open ?? [])];
  const starts = openers.map((opener) => text.indexOf(opener)).filter((at) => at >= 0);
  return (starts.length > 0 ? text.slice(Math.min(...starts)) : text).trim();
}

/** Texts that are not only calls as the format's first syntax writes them. */
const waived: Readonly<Record<string, string>> = {
  "llamacpp-gigachat3-006": "the spelling of 3.1, which has a description of its own for writing",
  "llamacpp-gigachat3-007": "the same",
  "llamacpp-gpt-oss-010": "reasoning before the call",
  "llamacpp-kimi-k2-013": "cut before the call's end",
  "llamacpp-lfm2.5-035": "a call within reasoning",
  "llamacpp-reka-edge-010": "the same",
  "llamacpp-ling-3-003": "text after the call",
  "llamacpp-muse-glimmer-003": "visible text in front",
};

if (!existsSync(folder)) console.log("skipped: no ../shared/vectors whose calls the grammars must hold");

describe.skipIf(!existsSync(folder))("call texts of ../shared/vectors", () => {
  it("are in the grammars made for their tools, but for those named here", () => {
    const missed = callTexts().filter(({ format, tools, text, prefix }) => {
      const { gbnf } = callGrammar(format, tools, { mode: "lazy", parallel: true, prefix, isFree: () => true });
      return !new Gbnf(gbnf).accepts(text);
    });
    expect(missed.map(({ id }) => id).filter((id) => !Object.hasOwn(waived, id))).toEqual([]);
  });
});
