import type { NamedCall, PlainFormat, Reasoning } from "../format.ts";
import { functionTag, openedThink, parameterTag, think } from "./general-formats.ts";

const toolCallSection = { open: ["<tool_call>"], close: ["</tool_call>"], perCall: true } as const;

/** Reasoning that ends where a call begins. */
const endedByCall: Reasoning = { ...openedThink, endedBy: ["<tool_call>"] };

/** DeepSeek's markup: one element per call, one element per parameter. */
const dsmlCall: NamedCall = {
  form: "named",
  open: ['<｜DSML｜invoke name="'],
  close: ["</｜DSML｜invoke>"],
  head: "{name}",
  headEnd: ['"'],
  tagEnd: ">",
  args: {
    kind: "tagged",
    open: '<｜DSML｜parameter name="',
    keyEnd: '"',
    tagEnd: ">",
    close: "</｜DSML｜parameter>",
    trim: "none",
    hint: { attribute: "string", string: "true", other: "false" },
    jsonBody: true,
    unwrap: ["arguments", "input"],
  },
};

/** GLM's format: `<tool_call>name` and a pair of tags per parameter. */
function glm(newlines: boolean): NamedCall {
  const close = "</tool_call>";
  return {
    form: "named",
    open: ["<tool_call>"],
    close: [close],
    head: "{name}",
    headEnd: newlines ? ["\n", "<arg_key>", close, "\\n"] : ["<arg_key>", close, "\n", "\\n"],
    headEndKept: ["<arg_key>", close],
    args: {
      kind: "tagged",
      open: "<arg_key>",
      keyEnd: "</arg_key>",
      valueOpen: "<arg_value>",
      close: "</arg_value>",
      trim: "none",
    },
  };
}

/** Formats with the name in plain text and one tag per parameter. */
export const taggedFormats: readonly PlainFormat[] = [
  {
    kind: "plain",
    id: "kimi-k3",
    reasoning: {
      open: ["<|open|>think<|sep|>"],
      close: ["<|close|>think<|sep|>"],
      endedBy: ["<|open|>tools<|sep|>", "<|open|>response<|sep|>"],
      assume: "outside",
      askedMeansInside: true,
    },
    strip: ["<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>"],
    section: { open: ["<|open|>tools<|sep|>"], close: ["<|close|>tools<|sep|>"] },
    calls: [
      {
        form: "named",
        open: ['<|open|>call tool="'],
        close: ["<|close|>call<|sep|>"],
        head: '{name}" index="{index}"',
        headEnd: ["<|sep|>"],
        args: {
          kind: "tagged",
          open: '<|open|>argument key="',
          keyEnd: '"',
          tagEnd: "<|sep|>",
          close: "<|close|>argument<|sep|>",
          trim: "none",
          hint: { attribute: "type", string: "string", other: "{type}" },
        },
      },
    ],
  },
  {
    kind: "plain",
    id: "minimax-m3",
    reasoning: {
      open: ["<mm:think>"],
      close: ["</mm:think>"],
      assume: "outside",
      strayClose: "strip-at-start",
    },
    section: { open: ["]<]minimax[>[<tool_call>"], close: ["]<]minimax[>[</tool_call>"] },
    calls: [
      {
        form: "named",
        open: [']<]minimax[>[<invoke name="'],
        close: ["]<]minimax[>[</invoke>"],
        head: "{name}",
        headEnd: ['">'],
        args: {
          kind: "tagged",
          open: "]<]minimax[>[<",
          keyEnd: ">",
          close: "]<]minimax[>[</{key}>",
          trim: "none",
          nestedItem: "item",
        },
      },
    ],
  },
  {
    kind: "plain",
    id: "minimax-m2",
    reasoning: openedThink,
    section: { open: ["<minimax:tool_call>"], close: ["</minimax:tool_call>"] },
    calls: [
      {
        form: "named",
        open: ['<invoke name="'],
        close: ["</invoke>"],
        head: "{name}",
        headEnd: ['">'],
        args: {
          kind: "tagged",
          open: '<parameter name="',
          keyEnd: '">',
          close: "</parameter>",
          trim: "none",
        },
      },
    ],
  },
  {
    kind: "plain",
    id: "deepseek-v3.2",
    reasoning: { ...openedThink, endedBy: ["<｜DSML｜function_calls>"] },
    section: { open: ["<｜DSML｜function_calls>"], close: ["</｜DSML｜function_calls>"], required: true },
    calls: [dsmlCall],
  },
  {
    kind: "plain",
    id: "deepseek-v4",
    reasoning: { ...openedThink, endedBy: ["<｜DSML｜tool_calls>"] },
    section: { open: ["<｜DSML｜tool_calls>"], close: ["</｜DSML｜tool_calls>"], required: true },
    calls: [dsmlCall],
  },
  {
    kind: "plain",
    id: "seed-oss",
    reasoning: { open: ["<seed:think>"], close: ["</seed:think>"], assume: "outside" },
    section: { open: ["<seed:tool_call>"], close: ["</seed:tool_call>"], perCall: true },
    calls: [{ ...functionTag, args: { ...parameterTag, trim: "none" } }],
  },
  {
    kind: "plain",
    id: "minicpm5",
    reasoning: openedThink,
    calls: [
      {
        form: "named",
        open: ['<function name="'],
        close: ["</function>"],
        head: "{name}",
        headEnd: ['"'],
        tagEnd: ">",
        args: {
          kind: "tagged",
          open: '<param name="',
          keyEnd: '"',
          tagEnd: ">",
          close: "</param>",
          trim: "none",
          cdata: true,
          strict: true,
        },
      },
    ],
  },
  {
    kind: "plain",
    id: "hunyuan",
    aliases: ["hunyuan-v3"],
    reasoning: { ...think, endedBy: ["<tool_calls>"] },
    section: { open: ["<tool_calls>"], close: ["</tool_calls>"] },
    calls: [
      {
        form: "named",
        open: ["<tool_call>"],
        close: ["</tool_call>"],
        head: "{name}",
        headEnd: ["<tool_sep>"],
        args: {
          kind: "tagged",
          open: "<arg_key>",
          keyEnd: "</arg_key>",
          valueOpen: "<arg_value>",
          close: "</arg_value>",
          trim: "none",
        },
      },
    ],
  },
  {
    kind: "plain",
    id: "step3",
    reasoning: think,
    section: { open: ["<｜tool_calls_begin｜>"], close: ["<｜tool_calls_end｜>"], required: true },
    calls: [
      {
        form: "named",
        open: ['<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="'],
        close: ["</steptml:invoke><｜tool_call_end｜>", "<｜tool_call_end｜>", "</steptml:invoke>"],
        head: "{name}",
        headEnd: ['">'],
        args: {
          kind: "tagged",
          open: '<steptml:parameter name="',
          keyEnd: '">',
          close: "</steptml:parameter>",
          trim: "none",
        },
      },
    ],
  },
  {
    kind: "plain",
    id: "ling-3",
    reasoning: endedByCall,
    strip: ["<|role_end|>"],
    calls: [glm(false)],
  },
  {
    kind: "plain",
    id: "poolside-v1",
    reasoning: openedThink,
    calls: [glm(true)],
  },
  {
    kind: "plain",
    id: "glm-4.5",
    reasoning: think,
    calls: [glm(true)],
  },
  {
    kind: "plain",
    id: "glm-4.7",
    aliases: ["spark2.5"],
    reasoning: openedThink,
    calls: [glm(false)],
  },
  {
    kind: "plain",
    id: "qwen3.5",
    aliases: ["nemotron3-nano", "step3.5"],
    reasoning: endedByCall,
    section: toolCallSection,
    calls: [functionTag],
  },
  {
    kind: "plain",
    id: "qwen3-coder",
    aliases: ["xml"],
    reasoning: think,
    section: toolCallSection,
    calls: [functionTag],
  },
];
