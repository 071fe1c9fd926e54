/** Markup of a model that clients should never see as text; the rules about streams and bodies share these. */

/** Returns the tag that opens reasoning at the start of a text, or `undefined`. */
export function reasoningTagIn(text: string): string | undefined {
  return /^\s*(<think>|<thinking>|\[THINK\]|<seed:think>|◁think▷)/.test(text)
    ? text.trimStart().slice(0, 12)
    : undefined;
}

/** Returns the markup of a tool call in a text, or `undefined`. */
export function callIn(text: string): string | undefined {
  return /<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|<function=|<\|tool_call|<｜tool▁call/.exec(text)?.[0];
}

/** Returns the special token at the end of a text, or `undefined`. */
export function specialTokenIn(text: string): string | undefined {
  return /(<\|im_end\|>|<\|eot_id\|>|<\|eom_id\|>|<\|endoftext\|>|<\|end\|>|<end_of_turn>|<\/s>)\s*$/.exec(text)?.[1];
}
