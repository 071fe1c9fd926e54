import type { ChoicesContext } from "../choices-answer.ts";

/**
 * The members that show reasoning in this answer; none where it is left out. OpenAI has no such member: profile `openai` shows it
 * only where the client or the configuration asks (wire.md section 1).
 */
export function reasoningFields({ profile, asked, settings }: ChoicesContext): readonly string[] {
  if (asked.includeReasoning === false) return [];
  const isWanted = profile.name === "lean" || asked.includeReasoning === true;
  return settings.reasoningFields ?? (isWanted ? ["reasoning_content"] : []);
}
