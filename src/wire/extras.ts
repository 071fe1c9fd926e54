import type { ExtraEvent } from "../generation/event.ts";
import type { ChoicesContext } from "./choices-answer.ts";
import type { JsonValue } from "./json-text.ts";
import { jsonText } from "./json-text.ts";

/** The members of an extra event that the settings let pass. */
export function passedMembers(event: ExtraEvent, context: ChoicesContext): [name: string, value: JsonValue][] {
  const pass = context.settings.passExtra ?? false;
  if (pass === false || event.place === "item" || (event.dialect ?? "chat") !== "chat") return [];
  // What a source added was read from JSON.
  const members = Object.entries(event.value as Record<string, JsonValue>);
  return pass === true ? members : members.filter(([name]) => pass.includes(name));
}

/** Members as they stand in JSON after others: `,"name":value` each. */
export function memberText(members: readonly [name: string, value: JsonValue][]): string {
  let text = "";
  for (const [name, value] of members) text += `,${JSON.stringify(name)}:${jsonText(value)}`;
  return text;
}
