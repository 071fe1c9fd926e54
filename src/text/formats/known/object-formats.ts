import type { NamedCall, ObjectCall, PlainFormat } from "../format.ts";
import { openedThink, think, usualKeys } from "./general-formats.ts";

/** `<tool_call>{"name": …, "arguments": …}</tool_call>`, one object per marker. */
const taggedObject: ObjectCall = {
  form: "object",
  open: ["<tool_call>"],
  close: ["</tool_call>"],
  list: "one",
  ...usualKeys,
};

/** `<tool_calls>[{…}, {…}]</tool_calls>`. */
const taggedArray: ObjectCall = {
  form: "object",
  open: ["<tool_calls>"],
  close: ["</tool_calls>"],
  list: "array",
  ...usualKeys,
};

/** `[TOOL_CALLS][{…}, {…}]`, Mistral's format up to tokenizer version 7. */
const mistralArray: ObjectCall = {
  form: "object",
  open: ["[TOOL_CALLS]"],
  close: ["[/TOOL_CALLS]"],
  list: "array",
  ...usualKeys,
  id: "id",
};

/** `[TOOL_CALLS]name[ARGS]{…}`, since version 11. */
const mistralNamed: NamedCall = {
  form: "named",
  open: ["[TOOL_CALLS]"],
  head: "{name}[CALL_ID]{id}",
  headEnd: ["[ARGS]", "{"],
  headEndKept: ["{"],
  args: { kind: "json" },
};

const cohereCall: ObjectCall = {
  form: "object",
  open: ["<|START_ACTION|>"],
  close: ["<|END_ACTION|>"],
  list: "array",
  name: ["tool_name"],
  arguments: ["parameters"],
  id: "tool_call_id",
};

const cohereReasoning = { open: ["<|START_THINKING|>"], close: ["<|END_THINKING|>"], assume: "outside" } as const;

/** Formats in which a call is a JSON object. */
export const objectFormats: readonly PlainFormat[] = [
  {
    kind: "plain",
    id: "granite-3",
    reasoning: {
      open: ["<think>", "Here is my thought process:", "Here's my thought process:"],
      close: ["</think>", "Here is my response:", "Here's my response:"],
      assume: "outside",
    },
    strip: ["<response>", "</response>"],
    calls: [
      {
        form: "object",
        open: ["<|tool_call|>", "<tool_call>"],
        bare: "start",
        list: "array",
        ...usualKeys,
        argumentsRequired: true,
      },
    ],
  },
  {
    kind: "plain",
    id: "command-r7b",
    aliases: ["cohere2-moe"],
    reasoning: cohereReasoning,
    strip: ["<|START_TEXT|>", "<|END_TEXT|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"],
    calls: [cohereCall],
  },
  {
    kind: "plain",
    id: "command-r-plus",
    strip: ["<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"],
    calls: [
      {
        form: "object",
        open: ["Action:"],
        list: "array",
        fence: true,
        name: ["tool_name"],
        arguments: ["parameters"],
      },
    ],
  },
  {
    kind: "plain",
    id: "apertus",
    reasoning: { open: ["<|inner_prefix|>"], close: ["<|inner_suffix|>"], assume: "outside" },
    calls: [
      {
        form: "object",
        open: ["<|tools_prefix|>"],
        close: ["<|tools_suffix|>"],
        list: "array",
        name: "key",
        arguments: ["arguments"],
      },
    ],
  },
  {
    kind: "plain",
    id: "nemotron-nano-v2",
    reasoning: openedThink,
    calls: [{ form: "object", open: ["<TOOLCALL>"], close: ["</TOOLCALL>"], list: "array", ...usualKeys }],
  },
  {
    kind: "plain",
    id: "firefunction-v2",
    aliases: ["phi4-mini"],
    calls: [{ form: "object", open: ["functools"], list: "array", ...usualKeys }],
  },
  {
    kind: "plain",
    id: "gigachat3.1",
    strip: ["</s>", "<|message_sep|>"],
    calls: [
      {
        form: "object",
        open: ["<|function_call|>", "<|message_sep|>\n\nfunction call<|role_sep|>\n"],
        list: "one",
        ...usualKeys,
      },
    ],
  },
  {
    kind: "plain",
    id: "gigachat3",
    strip: ["</s>", "<|message_sep|>"],
    calls: [
      {
        form: "object",
        open: ["<|message_sep|>\n\nfunction call<|role_sep|>\n", "<|function_call|>"],
        list: "one",
        ...usualKeys,
      },
    ],
  },
  {
    kind: "plain",
    id: "internlm2",
    calls: [
      {
        form: "object",
        open: ["<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"],
        close: ["<|action_end|>"],
        list: "one",
        name: ["name"],
        arguments: ["parameters", "arguments"],
      },
    ],
  },
  {
    kind: "plain",
    id: "longcat",
    reasoning: { open: ["<longcat_think>"], close: ["</longcat_think>"], assume: "outside" },
    calls: [
      { form: "object", open: ["<longcat_tool_call>"], close: ["</longcat_tool_call>"], list: "one", ...usualKeys },
      {
        form: "named",
        open: ["<longcat_tool_call>"],
        close: ["</longcat_tool_call>"],
        head: "{name}",
        headEnd: ["\n", "<longcat_arg_key>", "</longcat_tool_call>"],
        headEndKept: ["<longcat_arg_key>", "</longcat_tool_call>"],
        args: {
          kind: "tagged",
          open: "<longcat_arg_key>",
          keyEnd: "</longcat_arg_key>",
          valueOpen: "<longcat_arg_value>",
          close: "</longcat_arg_value>",
          trim: "none",
        },
      },
    ],
  },
  {
    kind: "plain",
    id: "mistral-v11",
    aliases: ["ministral3"],
    reasoning: { open: ["[THINK]"], close: ["[/THINK]"], assume: "outside" },
    calls: [mistralNamed, mistralArray],
  },
  { kind: "plain", id: "mistral", aliases: ["mistral-nemo", "mistral-v3"], calls: [mistralArray, mistralNamed] },
  {
    kind: "plain",
    id: "apriel-1.6",
    reasoning: { open: ["<|begin_assistant|>"], close: ["[BEGIN FINAL RESPONSE]"], assume: "outside" },
    strip: ["<|end|>"],
    calls: [taggedArray],
  },
  {
    kind: "plain",
    id: "minimax-m1",
    reasoning: think,
    calls: [{ form: "object", open: ["<tool_calls>"], close: ["</tool_calls>"], list: "stream", ...usualKeys }],
  },
  {
    kind: "plain",
    id: "hunyuan-a13b",
    reasoning: think,
    strip: ["<answer>", "</answer>"],
    calls: [taggedArray],
  },
  { kind: "plain", id: "jamba", aliases: ["apriel-1.5"], calls: [taggedArray] },
  {
    kind: "plain",
    id: "hermes",
    aliases: ["granite-4"],
    reasoning: think,
    calls: [taggedObject],
  },
  { kind: "plain", id: "hermes-qwq", aliases: ["reka-edge"], reasoning: openedThink, calls: [taggedObject] },
  {
    kind: "plain",
    id: "ernie45",
    reasoning: think,
    strip: ["<response>", "</response>"],
    calls: [taggedObject],
  },
  {
    kind: "plain",
    id: "granite-20b-fc",
    calls: [{ form: "object", open: ["<function_call>"], list: "one", ...usualKeys }],
  },
  {
    kind: "plain",
    id: "llama3-json",
    strip: ["<|eom_id|>", "<|eot_id|>"],
    calls: [
      {
        form: "object",
        open: ["<|python_tag|>"],
        bare: "anywhere",
        list: "stream",
        name: ["name"],
        arguments: ["parameters", "arguments"],
        argumentsRequired: true,
      },
      {
        form: "named",
        open: ["<|python_tag|>"],
        head: "{name}.call",
        headEnd: ["("],
        args: { kind: "kwargs" },
      },
    ],
  },
  {
    kind: "plain",
    id: "xlam",
    calls: [
      {
        form: "object",
        open: ["[TOOL_CALLS]", "<tool_call>"],
        close: ["</tool_call>"],
        bare: "anywhere",
        fence: true,
        list: "array",
        ...usualKeys,
      },
    ],
  },
  {
    kind: "plain",
    id: "json-array",
    aliases: ["generic-json-list"],
    calls: [{ form: "object", bare: "start", list: "array", ...usualKeys, argumentsRequired: true }],
  },
  {
    kind: "plain",
    id: "generic-json",
    reasoning: think,
    calls: [{ form: "object", bare: "start", list: "stream", ...usualKeys, argumentsRequired: true }],
  },
];
