import type { NamedCall, Reasoning, TaggedArgs } from "../format.ts";

/** `<think>` … `</think>`, as most models write a thought. */
export const think: Reasoning = { open: ["<think>"], close: ["</think>"], assume: "outside" };

/** The same where the template opens the thought, if the model is asked to think. */
export const openedThink: Reasoning = { ...think, askedMeansInside: true };

/** The keys of a call's object, as most models write them. */
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
