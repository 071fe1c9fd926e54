import { nearest } from "../../wire/core/nearest.ts";
import { type Format, plainText } from "./format.ts";
import { generalFormats, reasoningFormats } from "./known/general-formats.ts";
import { namedFormats } from "./known/named-formats.ts";
import { objectFormats } from "./known/object-formats.ts";
import { routedFormats } from "./known/routed-formats.ts";
import { taggedFormats } from "./known/tagged-formats.ts";

/** All known formats, each once. */
export const knownFormats: readonly Format[] = [
  ...routedFormats,
  ...taggedFormats,
  ...namedFormats,
  ...objectFormats,
  ...generalFormats,
  ...reasoningFormats,
  plainText,
];

const byName = new Map(knownFormats.flatMap((format) => namesOf(format).map((name) => [name, format] as const)));

/** The names of all known formats, including aliases. */
export const knownNames: readonly string[] = [...byName.keys()];

/** The format with this name or alias, or undefined. */
export function formatNamed(name: string): Format | undefined {
  return byName.get(name);
}

/** The names that an error shows. */
const common = ["auto", "hermes", "qwen3-coder", "llama3-json", "mistral", "deepseek-v3.1", "gpt-oss"];

/** The format with this name or alias. Throws a RangeError with the name that was meant, or some that are known. */
export function requireFormat(name: string): Format {
  const format = formatNamed(name);
  if (format) return format;
  const meant = nearest(name, knownNames);
  const hint =
    meant === undefined
      ? `known are ${common.join(", ")} and ${knownNames.length - common.length} more`
      : `did you mean ${meant}?`;
  throw new RangeError(`format "${name}" is not known; ${hint} (truewire formats lists all)`);
}

function namesOf({ id, aliases = [] }: Format): readonly string[] {
  return [id, ...aliases];
}

/** What the source of a template with this format contains: all of `has`, and not `hasNot`. */
interface Sign {
  readonly format: string;
  readonly has: readonly string[];
  readonly hasNot?: string;
}

/** The first match applies. Formats with unique markers come first, those whose markers also occur in other templates last. */
const signs: readonly Sign[] = [
  { format: "gpt-oss", has: ["<|channel|>"] },
  { format: "muse-glimmer", has: ["atem:"] },
  { format: "functionary-v3.2", has: [">>>all"] },
  { format: "kimi-k3", has: ["<|open|>", "<|sep|>"] },
  { format: "solar-open", has: ["<|tool_call:begin|>"] },
  { format: "minimax-m3", has: ["]<]minimax[>["] },
  { format: "minimax-m2", has: ["<minimax:tool_call>"] },
  { format: "deepseek-v3.2", has: ["DSML", "function_calls"] },
  { format: "deepseek-v4", has: ["DSML"] },
  { format: "deepseek-r1", has: ["<｜tool▁calls▁begin｜>", "```json"] },
  { format: "deepseek-v3.1", has: ["<｜tool▁calls▁begin｜>"] },
  { format: "kimi-k2", has: ["<|tool_calls_section_begin|>"] },
  { format: "seed-oss", has: ["<seed:tool_call>"] },
  { format: "minicpm5", has: ["<param name="] },
  { format: "hunyuan", has: ["<tool_sep"] },
  { format: "gemma4", has: ["<|tool_call>"] },
  { format: "functiongemma", has: ["<start_function_call>"] },
  { format: "granite-3", has: ["<|tool_call|>"] },
  { format: "command-r7b", has: ["<|START_ACTION|>"] },
  { format: "command-r-plus", has: ["Action:", "```json"] },
  { format: "apertus", has: ["<|tools_prefix|>"] },
  { format: "nemotron-nano-v2", has: ["<TOOLCALL>"] },
  { format: "firefunction-v2", has: ["functools["] },
  { format: "firefunction-v2", has: ["<|tool|>", "<|/tool|>"] },
  { format: "gigachat3.1", has: ["<|role_sep|>", "<|function_call|>"] },
  { format: "gigachat3", has: ["<|role_sep|>", "function call"] },
  { format: "internlm2", has: ["<|action_start|>"] },
  { format: "longcat", has: ["<longcat_tool_call>"] },
  { format: "olmo3", has: ["<function_calls>"] },
  { format: "step3", has: ["<steptml:invoke"] },
  { format: "lfm2", has: ["<|tool_list_start|>"] },
  { format: "lfm2", has: ["<|tool_call_start|>"] },
  { format: "mistral-v11", has: ["[TOOL_CALLS]", "[ARGS]"] },
  { format: "mistral", has: ["[TOOL_CALLS]"] },
  { format: "ling-3", has: ["<arg_key>", "<role>ASSISTANT</role>"] },
  { format: "glm-4.7", has: ["<arg_key>", "<|Bot|>"] },
  { format: "poolside-v1", has: ["<arg_key>", "<assistant>"] },
  { format: "glm-4.5", has: ["<arg_key>", "</arg_key>\n<arg_value>"] },
  { format: "glm-4.7", has: ["<arg_key>"] },
  { format: "functionary-v3.1", has: ["<function="], hasNot: "<tool_call>" },
  { format: "qwen3.5", has: ["<function=", "<think>"] },
  { format: "qwen3-coder", has: ["<function="] },
  { format: "apriel-1.6", has: ["<tool_calls>", "<|begin_assistant|>"] },
  { format: "minimax-m1", has: ["<tool_calls>\\n"] },
  { format: "jamba", has: ["<tool_calls>"] },
  { format: "hermes", has: ["<tool_call>"] },
  { format: "granite-20b-fc", has: ["<function_call>"] },
  { format: "llama3-json", has: ['"parameters": ', "<|start_header_id|>"] },
  { format: "llama4-pythonic", has: ["<|header_start|>"] },
  // Templates of LFM2.5 without any marker of a call.
  { format: "lfm2", has: ["List of tools: ["] },
];

/** The format of a chat template, recognized by its markers, or undefined. */
export function recognizeFormat(templateSource: string): Format | undefined {
  const contains = (part: string): boolean => templateSource.includes(part);
  const sign = signs.find(({ has, hasNot }) => has.every(contains) && (hasNot === undefined || !contains(hasNot)));
  return sign && formatNamed(sign.format);
}

/** Whether a known format is recognized by this marker, alone or together with others. */
export function isSignOf({ id }: Format, marker: string): boolean {
  return signs.some(({ format, has }) => format === id && has.includes(marker));
}
