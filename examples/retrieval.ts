// Answers from local files: finds the paragraphs that share most words with the question and quotes them with their source.
//   truewire serve ./examples/retrieval.ts
// The folder is NOTES, or the notes next to this file. A real one would hand the paragraphs to a model; see router.ts for how.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineProgram, RequestError } from "truewire";

const folder = process.env.NOTES ?? fileURLToPath(new URL("notes", import.meta.url));

interface Paragraph {
  readonly file: string;
  readonly text: string;
  readonly words: ReadonlySet<string>;
}

export default defineProgram(async function* ({ messages }) {
  const question = messages.findLast((message) => message.role === "user")?.content;
  if (typeof question !== "string") throw new RequestError("Ask in words, please.", { param: "messages" });
  const asked = wordsOf(question);
  const ranked = (await paragraphs())
    .map((paragraph) => ({ paragraph, score: [...asked].filter((word) => paragraph.words.has(word)).length }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score);
  if (ranked.length === 0) {
    yield "I found nothing about that in the notes.";
    return;
  }
  for (const { paragraph } of ranked.slice(0, 2)) yield `${paragraph.text} [${paragraph.file}]\n\n`;
});

async function paragraphs(): Promise<Paragraph[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith(".md")).toSorted();
  const texts = await Promise.all(
    files.map(async (file) => ({ file, text: await readFile(join(folder, file), "utf8") })),
  );
  return texts.flatMap(({ file, text }) =>
    text
      .trim()
      .split(/\n{2,}/)
      .map((part) => ({ file, text: part, words: wordsOf(part) })),
  );
}

/** Words of three letters and more; the shorter ones are in every text. */
function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/\p{L}{3,}/gu));
}
