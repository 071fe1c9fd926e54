import type { NamedCall, PlainFormat } from "../format.ts";
import { openedThink, think, usualKeys } from "./general-formats.ts";

const deepseekSection = {
  open: [
    "<｜tool▁calls▁begin｜>",
    "<｜tool_calls_begin｜>",
    "<｜tool calls begin｜>",
    "<｜tool\\_calls\\_begin｜>",
    "<｜tool▁calls｜>",
  ],
  close: ["<｜tool▁calls▁end｜>"],
} as const;

/** `function<｜tool▁sep｜>name⏎`, followed by the arguments in a code fence. */
const deepseekFenced: NamedCall = {
  form: "named",
  open: ["<｜tool▁call▁begin｜>function<｜tool▁sep｜>"],
  close: ["<｜tool▁call▁end｜>"],
  head: "{name}",
  headEnd: ["\n"],
  fence: true,
  args: { kind: "json" },
};

const deepseekPlain: NamedCall = {
  form: "named",
  open: ["<｜tool▁call▁begin｜>"],
  close: ["<｜tool▁call▁end｜>"],
  head: "{name}",
  headEnd: ["<｜tool▁sep｜>"],
  args: { kind: "json" },
};

const functionTag: NamedCall = {
  form: "named",
  open: ["<function="],
  close: ["</function>"],
  head: "{name}",
  headEnd: [">"],
  args: { kind: "json" },
};

/** Formats with the name in plain text and arguments in JSON, loose JSON, or Python. */
export const namedFormats: readonly PlainFormat[] = [
  {
    kind: "plain",
    id: "solar-open",
    reasoning: { open: ["<|think|>"], close: ["<|end|>"], assume: "outside" },
    strip: ["<|content|>", "<|flush|>"],
    section: { open: ["<|tool_calls|>"], close: ["<|calls|>"] },
    calls: [
      {
        form: "named",
        open: ["<|tool_call:begin|>"],
        close: ["<|tool_call:end|>"],
        head: "{id}<|tool_call:name|>{name}",
        headEnd: ["<|tool_call:args|>"],
        args: { kind: "json" },
      },
    ],
  },
  {
    kind: "plain",
    id: "deepseek-v3",
    reasoning: { ...think, assume: "unknown" },
    drop: [["<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"]],
    section: deepseekSection,
    calls: [deepseekFenced],
  },
  {
    kind: "plain",
    id: "deepseek-r1",
    reasoning: openedThink,
    drop: [["<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"]],
    section: deepseekSection,
    calls: [deepseekFenced],
  },
  {
    kind: "plain",
    id: "deepseek-v3-legacy",
    reasoning: think,
    section: { open: ["<|tool▁calls▁begin|>"], close: ["<|tool▁calls▁end|>"] },
    calls: [
      {
        ...deepseekFenced,
        open: ["<|tool▁call▁begin|>function<|tool▁sep|>"],
        close: ["<|tool▁call▁end|>"],
      },
    ],
  },
  {
    kind: "plain",
    id: "deepseek-v3.1",
    reasoning: openedThink,
    strip: ["<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"],
    section: deepseekSection,
    calls: [deepseekPlain],
    invalid: "drop",
  },
  {
    kind: "plain",
    id: "kimi-k2",
    reasoning: { ...think, endedBy: ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"] },
    section: { open: ["<|tool_calls_section_begin|>"], close: ["<|tool_calls_section_end|>"] },
    calls: [
      {
        form: "named",
        open: ["<|tool_call_begin|>"],
        close: ["<|tool_call_end|>"],
        head: "functions.{name}:{index}",
        headEnd: ["<|tool_call_argument_begin|>"],
        headIsId: true,
        args: { kind: "json" },
      },
    ],
    invalid: "raw",
  },
  {
    kind: "plain",
    id: "functionary-v3.1",
    calls: [functionTag],
  },
  {
    kind: "plain",
    id: "gemma4",
    reasoning: {
      open: ["<|channel>"],
      close: ["<channel|>"],
      assume: "outside",
      label: "thought\n",
      anywhere: true,
      strayClose: "strip",
    },
    strip: ["<|tool_response>"],
    calls: [
      {
        form: "named",
        open: ["<|tool_call>"],
        close: ["<tool_call|>"],
        head: "call:{name}",
        headEnd: ["{"],
        headEndKept: ["{"],
        args: { kind: "loose", quotes: ['<|"|>'] },
      },
    ],
  },
  {
    kind: "plain",
    id: "functiongemma",
    calls: [
      {
        form: "named",
        open: ["<start_function_call>"],
        close: ["<end_function_call>"],
        head: "call:{name}",
        headEnd: ["{"],
        headEndKept: ["{"],
        args: { kind: "loose", quotes: ["<escape>"] },
      },
    ],
  },
  {
    kind: "plain",
    id: "lfm2",
    aliases: ["lfm2.5"],
    reasoning: think,
    calls: lfmCalls(),
  },
  {
    kind: "plain",
    id: "olmo3",
    reasoning: { ...think, assume: "unknown" },
    calls: [
      {
        form: "named",
        open: ["<function_calls>"],
        close: ["</function_calls>"],
        head: "{name}",
        headEnd: ["("],
        list: "lines",
        args: { kind: "kwargs" },
      },
    ],
  },
  {
    kind: "plain",
    id: "llama4-pythonic",
    strip: ["<|eom_id|>", "<|eot_id|>"],
    calls: [
      {
        form: "named",
        open: ["<|python_start|>"],
        close: ["<|python_end|>"],
        bare: "whole",
        head: "{name}",
        headEnd: ["("],
        list: "python",
        args: { kind: "kwargs" },
      },
    ],
  },
  {
    kind: "plain",
    id: "pythonic",
    calls: [{ form: "named", bare: "whole", head: "{name}", headEnd: ["("], list: "python", args: { kind: "kwargs" } }],
  },
];

function lfmCalls(): PlainFormat["calls"] {
  const markers = { open: ["<|tool_call_start|>"], close: ["<|tool_call_end|>"] } as const;
  return [
    { form: "named", ...markers, head: "{name}", headEnd: ["("], list: "python", args: { kind: "kwargs" } },
    { form: "object", ...markers, list: "array", ...usualKeys },
    { form: "object", ...markers, list: "one", ...usualKeys },
  ];
}
