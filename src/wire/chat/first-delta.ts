import type { ChoiceForm } from "../capture-form.ts";
import type { Profile } from "../profile.ts";

/** What a choice begins with, as far as its first delta shows it. */
export type Opening = "text" | "refusal" | "call" | "calls";

/**
 * The first delta of a choice, which alone has the role. `header`: the header of the first tool call, as the member
 * `"tool_calls":[…]`, where it stands in the same delta (path A).
 *
 * Profile `lean`: the role and nothing else. Profile `openai`: by case, as recorded (wire.md section 2.3). A capture keeps its own.
 */
export function firstDelta(
  opening: Opening,
  header: string | null,
  profile: Profile,
  form: ChoiceForm | undefined,
): string {
  if (profile.name === "lean") return '{"role":"assistant"}';
  const { content, refusal } = form ?? liveForm(opening);
  const members = ['"role":"assistant"'];
  if (content !== undefined) members.push(`"content":${content === null ? "null" : '""'}`);
  if (header !== null) members.push(header);
  if (refusal !== undefined) members.push(`"refusal":${refusal === null ? "null" : '""'}`);
  return `{${members.join(",")}}`;
}

function liveForm(opening: Opening): Pick<ChoiceForm, "content" | "refusal"> {
  switch (opening) {
    case "text":
      return { content: "", refusal: null };
    case "refusal":
      return { content: null, refusal: "" };
    case "call":
      return { content: null, refusal: null };
    case "calls":
      return { content: null };
  }
}
