import type { PlainFormat } from "../format.ts";

export const hermes: PlainFormat = {
  kind: "plain",
  id: "hermes",
  detect: { all: ["<tool_call>"] },
  reasoning: { open: ["<think>"], close: ["</think>"], assume: "outside" },
  calls: [
    {
      form: "object",
      open: ["<tool_call>"],
      close: ["</tool_call>"],
      list: "one",
      name: ["name"],
      arguments: ["arguments", "parameters"],
    },
  ],
};
