import type { PlainFormat, Reasoning } from "../format.ts";
import { think } from "./shared.ts";

const inside: Reasoning = { ...think, assume: "inside", askedMeansInside: true };
const kimiCall = ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"];

function reasoningOnly(id: string, reasoning: Reasoning): PlainFormat {
  return { kind: "plain", id: `reasoning-${id}`, reasoning, calls: [] };
}

/** Formats with a thought and without calls: for servers that separate the two, and for models that know no tools. */
export const reasoningFormats: readonly PlainFormat[] = [
  reasoningOnly("think-tags", think),
  reasoningOnly("deepseek-r1", inside),
  reasoningOnly("deepseek-v3", think),
  reasoningOnly("qwen3", { ...inside, endedBy: ["<tool_call>"] }),
  reasoningOnly("nemotron-v3", inside),
  reasoningOnly("minimax-m2", inside),
  reasoningOnly("step3.5", inside),
  { ...reasoningOnly("ernie45", inside), strip: ["<response>", "</response>"] },
  reasoningOnly("hunyuan-v3", inside),
  reasoningOnly("seed-oss", { open: ["<seed:think>"], close: ["</seed:think>"], assume: "inside" }),
  reasoningOnly("kimi-k2", { ...inside, endedBy: kimiCall }),
  reasoningOnly("olmo3", { ...think, assume: "unknown" }),
  reasoningOnly("gemma4", {
    open: ["<|channel>"],
    close: ["<channel|>"],
    assume: "unknown",
    label: "thought\n",
    anywhere: true,
  }),
  reasoningOnly("think-kimi", { open: ["◁think▷"], close: ["◁/think▷"], assume: "outside" }),
  reasoningOnly("hunyuan", { ...think, endedBy: ["<tool_calls>"] }),
  { ...reasoningOnly("hunyuan-a13b", think), strip: ["<answer>", "</answer>"] },
  reasoningOnly("granite", {
    open: ["Here is my thought process:", "Here's my thought process:"],
    close: ["Here is my response:", "Here's my response:"],
    assume: "outside",
  }),
];
