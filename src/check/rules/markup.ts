/** What a model writes that no client should see as text; shared by the rules about streams and bodies. */

/** The opening of a thought at the start of a text; undefined where there is none. */
export function thoughtIn(text: string): string | undefined {
  return /^\s*(<think>|<thinking>|\[THINK\]|<seed:think>|◁think▷)/.test(text)
    ? text.trimStart().slice(0, 12)
    : undefined;
}

/** The markup of a call that no parser read. */
export function callIn(text: string): string | undefined {
  return /<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\]|<function=|<\|tool_call|<｜tool▁call/.exec(text)?.[0];
}

/** A special token at the end of a text. */
export function specialTokenIn(text: string): string | undefined {
  return /(<\|im_end\|>|<\|eot_id\|>|<\|eom_id\|>|<\|endoftext\|>|<\|end\|>|<end_of_turn>|<\/s>)\s*$/.exec(text)?.[1];
}
