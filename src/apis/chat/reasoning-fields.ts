import type { ChoicesContext } from "../choices-answer.ts";
import type { ChatForm } from "./form.ts";

/** The members that show reasoning in this answer; none where it is left out. */
export function reasoningFields({ showsReasoning }: ChatForm, { asked, settings }: ChoicesContext): readonly string[] {
  if (asked.includeReasoning === false) return [];
  const isWanted = showsReasoning || asked.includeReasoning === true;
  return settings.reasoningFields ?? (isWanted ? ["reasoning_content"] : []);
}
