/**
 * Whether a request's variables ask the model to think; undefined: they do not say. Templates read `enable_thinking` or `thinking`; an
 * effort says it, too, to those that know no efforts.
 */
export function askedThinking(variables: Readonly<Record<string, unknown>>): boolean | undefined {
  const { enable_thinking: enabled, thinking, reasoning_effort: effort } = variables;
  const asked = enabled ?? thinking ?? ofEffort(effort);
  return typeof asked === "boolean" ? asked : undefined;
}

/** `minimal` is a little thought or none: that is the template's to decide. */
function ofEffort(effort: unknown): boolean | undefined {
  if (typeof effort !== "string" || effort === "minimal") return undefined;
  return effort !== "none";
}
