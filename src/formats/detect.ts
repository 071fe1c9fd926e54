import type { Format } from "./format.ts";
import { formatNamed } from "./known.ts";

/**
 * The order in which formats are looked for: those with markers of their own first, those whose markers also stand in other templates
 * behind these. What is looked for is each format's `detect`.
 */
const order: readonly string[] = [
  "gpt-oss",
  "muse-glimmer",
  "functionary-v3.2",
  "kimi-k3",
  "solar-open",
  "minimax-m3",
  "minimax-m2",
  "deepseek-v3.2",
  "deepseek-v4",
  "deepseek-r1",
  "deepseek-v3.1",
  "kimi-k2",
  "seed-oss",
  "minicpm5",
  "hunyuan-v3",
  "gemma4",
  "functiongemma",
  "granite-3",
  "cohere2-moe",
  "command-r7b",
  "command-r-plus",
  "apertus",
  "nemotron-nano-v2",
  "firefunction-v2",
  "phi4-mini",
  "gigachat3.1",
  "gigachat3",
  "internlm2",
  "longcat",
  "olmo3",
  "step3",
  "lfm2",
  "lfm2.5",
  "ministral3",
  "mistral-v11",
  "mistral-nemo",
  "ling-3",
  "spark2.5",
  "poolside-v1",
  "glm-4.5",
  "glm-4.7",
  "functionary-v3.1",
  "qwen3.5",
  "qwen3-coder",
  "apriel-1.6",
  "minimax-m1",
  "apriel-1.5",
  "jamba",
  "hermes",
  "granite-20b-fc",
  "llama3-json",
  "llama4-pythonic",
];

/** Templates of the LFM2.5 models that do not contain the markers of a call, but this. */
const lfmTools = "List of tools: [";

/** The format that a chat template writes, by its markers; undefined when it has none that is known. */
export function recognizeFormat(templateSource: string): Format | undefined {
  const has = (part: string): boolean => templateSource.includes(part);
  for (const id of order) {
    const format = formatNamed(id);
    if (format?.detect && format.detect.all.every(has) && !(format.detect.none ?? []).some(has)) return format;
  }
  return has(lfmTools) ? formatNamed("lfm2.5") : undefined;
}
