import { type DraftMutation, onPart, onText } from "../draft-mutation.ts";
import type { BodyDraft, Json } from "./body-draft.ts";

export type BodyMutation = DraftMutation<BodyDraft>;

/** Changes one object of those that there are. */
export const onObject: typeof onPart<BodyDraft, Json> = onPart;

/** Rewrites the text of a body that fits. */
export const onBodyText: typeof onText<BodyDraft> = onText;

/** A required member is dropped, renamed, or has each of some wrong values. */
export function spoiled(
  rule: string,
  member: string,
  objects: (draft: BodyDraft) => Json[],
  wrong: readonly unknown[],
): BodyMutation[] {
  return [
    onObject(rule, `no ${member}`, objects, (object) => delete object[member]),
    onObject(rule, `${member} under another name`, objects, (object) => {
      object[`${member}_`] = object[member];
      delete object[member];
    }),
    ...wrong.map((value) =>
      onObject(rule, `${member}: ${JSON.stringify(value)}`, objects, (object) => (object[member] = value)),
    ),
  ];
}
