import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { languageDifferences, promptDifferences } from "../test/templates/compare-with-python.ts";
import { generatedConversations } from "../test/templates/generated-conversations.ts";
import { pythonPackages } from "./place.ts";

const packages = pythonPackages("text");

/**
 * Renders the templates of a folder over generated conversations with Transformers and with Truewire, and prints how many prompts differ, with
 * the first one. `count`: conversations for each template.
 */
export async function compareTemplates(folder: string, count: number): Promise<void> {
  if (!existsSync(folder)) return console.log(`skipped: there is no folder ${folder} with templates (*.jinja)`);
  await packages.install("transformers==5.19.0", "jinja2==3.1.6");
  const files = readdirSync(folder).filter((file) => file.endsWith(".jinja"));
  const sources = files.map((file) => readFileSync(join(folder, file), "utf8"));
  const seed = 2026;
  for (const [what, differences] of [
    [
      "the same variables",
      languageDifferences(sources, generatedConversations(count, seed, { images: true }), packages.program("python")),
    ],
    [
      "requests of Chat Completions",
      promptDifferences(
        sources,
        generatedConversations(Math.ceil(count / 8), seed, { images: false }),
        packages.program("python"),
      ),
    ],
  ] as const) {
    for (const [at, ofFile] of differences.entries()) {
      const [first] = ofFile;
      if (first === undefined) continue;
      const start = [...first.ours].findIndex((character, index) => character !== [...first.theirs][index]);
      const near = (text: string): string =>
        JSON.stringify([...text].slice(Math.max(0, start - 20), start + 60).join(""));
      console.log(
        `${files[at]}: ${ofFile.length} differ\n  Truewire      ${near(first.ours)}\n  Transformers  ${near(first.theirs)}`,
      );
    }
    const same = differences.filter(({ length }) => length === 0).length;
    console.log(
      `Transformers ${packages.version("transformers")}, ${what}: ${same} of ${files.length} templates the same in all prompts`,
    );
  }
}
