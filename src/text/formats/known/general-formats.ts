import type { NamedCall, ObjectCall, PlainFormat, Reasoning, TaggedArgs } from "../format.ts";

/** `<think>` … `</think>`, the reasoning markers of most models. */
export const think: Reasoning = { open: ["<think>"], close: ["</think>"], assume: "outside" };

/** The same if the template opens the reasoning when reasoning is requested. */
export const openedThink: Reasoning = { ...think, askedMeansInside: true };

/** The keys of a call's object in most formats. */
export const usualKeys = { name: ["name"], arguments: ["arguments", "parameters"] } as const;

/** `<parameter=key>⏎value⏎</parameter>`. */
export const parameterTag: TaggedArgs = {
  kind: "tagged",
  open: "<parameter=",
  keyEnd: ">",
  close: "</parameter>",
  trim: "newline",
  jsonBody: true,
};

/** `<function=name>`, with parameters in tags or a JSON object. */
export const functionTag: NamedCall = {
  form: "named",
  open: ["<function="],
  close: ["</function>"],
  head: "{name}",
  headEnd: [">"],
  args: parameterTag,
};

/** JSON as tabbyAPI requests it: flat or nested, one object or an array, with or without a fence, anywhere in the text. */
const oneObject: ObjectCall = {
  form: "object",
  bare: "anywhere",
  list: "one",
  fence: true,
  ...usualKeys,
  argumentsRequired: true,
  id: "id",
  nested: "function",
};
const arrayOfObjects: ObjectCall = { ...oneObject, list: "array" };

/** Formats to select by name for a model without a known format. */
export const generalFormats: readonly PlainFormat[] = [
  { kind: "plain", id: "json", reasoning: think, calls: [arrayOfObjects, oneObject] },
  {
    kind: "plain",
    id: "auto",
    reasoning: think,
    section: { open: ["<tool_call>", "<|python_tag|>"], close: ["</tool_call>"], perCall: true },
    calls: [oneObject, arrayOfObjects, functionTag],
  },
];

const inside: Reasoning = { ...think, assume: "inside", askedMeansInside: true };
const kimiCall = ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"];

function reasoningOnly(id: string, reasoning: Reasoning, aliases?: readonly string[]): PlainFormat {
  return { kind: "plain", id, ...(aliases && { aliases }), reasoning, calls: [] };
}

/** Formats with reasoning and without calls: for servers that separate reasoning, and for models without tools. */
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
