import type { FirstMembers } from "./form.ts";

/**
 * The first delta of a choice, which alone has the role. `header`: the header of the first tool call, as the member
 * `"tool_calls":[…]`, where it stands in the same delta.
 */
export function firstDelta({ content, refusal }: FirstMembers, header: string | null): string {
  let members = '"role":"assistant"';
  if (content !== undefined) members += `,"content":${content === null ? "null" : '""'}`;
  if (header !== null) members += `,${header}`;
  if (refusal !== undefined) members += `,"refusal":${refusal === null ? "null" : '""'}`;
  return `{${members}}`;
}
