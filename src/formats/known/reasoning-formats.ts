import type { PlainFormat, Reasoning } from "../format.ts";
import { think } from "./shared.ts";

const inside: Reasoning = { ...think, assume: "inside", askedMeansInside: true };
const kimiCall = ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"];

function reasoningOnly(id: string, reasoning: Reasoning, aliases?: readonly string[]): PlainFormat {
  return { kind: "plain", id, ...(aliases && { aliases }), reasoning, calls: [] };
}

/** Formats with a thought and without calls: for servers that separate the two, and for models that know no tools. */
export const reasoningFormats: readonly PlainFormat[] = [
  reasoningOnly("reasoning-think-tags", think, ["reasoning-think", "reasoning-deepseek-v3"]),
  reasoningOnly("reasoning-deepseek-r1", inside, [
    "reasoning-hunyuan-v3",
    "reasoning-minimax-m2",
    "reasoning-nemotron-v3",
    "reasoning-step3.5",
  ]),
  reasoningOnly("reasoning-qwen3", { ...inside, endedBy: ["<tool_call>"] }),
  { ...reasoningOnly("reasoning-ernie45", inside), strip: ["<response>", "</response>"] },
  reasoningOnly("reasoning-seed-oss", { open: ["<seed:think>"], close: ["</seed:think>"], assume: "inside" }),
  reasoningOnly("reasoning-kimi-k2", { ...inside, endedBy: kimiCall }),
  reasoningOnly("reasoning-olmo3", { ...think, assume: "unknown" }),
  reasoningOnly("reasoning-gemma4", {
    open: ["<|channel>"],
    close: ["<channel|>"],
    assume: "unknown",
    label: "thought\n",
    anywhere: true,
  }),
  reasoningOnly("reasoning-think-kimi", { open: ["◁think▷"], close: ["◁/think▷"], assume: "outside" }),
  reasoningOnly("reasoning-hunyuan", { ...think, endedBy: ["<tool_calls>"] }),
  { ...reasoningOnly("reasoning-hunyuan-a13b", think), strip: ["<answer>", "</answer>"] },
  reasoningOnly("reasoning-granite", {
    open: ["Here is my thought process:", "Here's my thought process:"],
    close: ["Here is my response:", "Here's my response:"],
    assume: "outside",
  }),
];
