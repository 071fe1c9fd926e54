import { join } from "node:path";
import { startTruewire } from "../test/support/serve.ts";
import { installMiniLm } from "./models.ts";
import { command, freePort, inPlace, pythonPackages } from "./place.ts";
import { startLlamaServer } from "./servers/llama-server.ts";
import { textsInManyScripts } from "./texts.ts";
import { writeFileSync } from "node:fs";

const sentences: readonly string[] = [
  "A man is eating food.",
  "A man eats a piece of bread.",
  "The girl carries a baby.",
  "Someone rides a horse across a field.",
  "Der Hafen öffnet um sieben Uhr.",
  "今日は天気がいい。",
  "def add(a, b): return a + b",
  "",
];

async function embedded(url: string, model: string, input: readonly string[]): Promise<number[][]> {
  const vectors: number[][] = [];
  for (const text of input) {
    const response = await fetch(`${url}/v1/embeddings`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, input: text === "" ? " " : text, encoding_format: "float" }),
    });
    const { data, error } = (await response.json()) as { data?: [{ embedding: number[] }]; error?: unknown };
    if (!data) throw new Error(`${url}: ${response.status} ${JSON.stringify(error)}`);
    vectors.push(data[0].embedding);
  }
  return vectors;
}

/** The least cosine of two vectors of the same text, and the text. */
function least(texts: readonly string[], ours: readonly number[][], theirs: readonly number[][]): string {
  const cosines = ours.map((one, index) => {
    const other = theirs[index] ?? [];
    const dot = (a: readonly number[], b: readonly number[]): number =>
      a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
    return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other));
  });
  const lowest = Math.min(...cosines);
  const same = cosines.filter((cosine) => cosine > 0.9999).length;
  return `${same} of ${texts.length} the same (cosine over 0.9999); least ${lowest.toFixed(6)}: ${JSON.stringify(texts[cosines.indexOf(lowest)])}`;
}

/** Compares embeddings of MiniLM: Truewire's own engine, Transformers with the original weights, and llama-server. Says a line for each. */
export async function compareEmbeddings(say: (row: string) => void): Promise<void> {
  const { folder, file } = await installMiniLm();
  const texts = [...sentences, ...textsInManyScripts(192)];
  const input = inPlace("models", "texts.json");
  writeFileSync(input, JSON.stringify(texts.map((text) => (text === "" ? " " : text))));
  const python = pythonPackages("vllm").program("python");
  const args = [join("interop", "servers", "embed.py"), folder, input];
  const original = JSON.parse(await command(python, args, { env: { HF_HUB_OFFLINE: "1" } })) as number[][];
  const truewire = await startTruewire([`minilm=${file}`]);
  try {
    const ours = await embedded(truewire.url, "minilm", texts);
    say(`embeddings and Transformers': ${least(texts, ours, original)}`);
    const other = await startLlamaServer(file, await freePort(), 512, { isForEmbeddings: true });
    try {
      const theirs = await embedded(other.url, other.model, texts);
      say(`embeddings and llama-server's: ${least(texts, ours, theirs)}`);
    } finally {
      await other.stop();
    }
  } finally {
    await truewire.stop();
  }
}
