import { oneOf } from "../../random.ts";
import type { BodyDraft, Json } from "./body-draft.ts";

/** A change that makes a legal body illegal. `apply` says whether it could be made in this one. */
export interface BodyMutation {
  /** The rule that must notice. */
  readonly rule: string;
  readonly name: string;
  apply(draft: BodyDraft, random: () => number): boolean;
}

/** Changes one object of those that there are. */
export function onObject(
  rule: string,
  name: string,
  objects: (draft: BodyDraft) => Json[],
  change: (object: Json, draft: BodyDraft) => void,
): BodyMutation {
  return {
    rule,
    name,
    apply(draft, random) {
      const all = objects(draft);
      if (all.length === 0) return false;
      change(oneOf(all, random), draft);
      return true;
    },
  };
}

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

/** Rewrites the text of a body that fits. */
export function onBodyText(
  rule: string,
  name: string,
  fits: (draft: BodyDraft) => boolean,
  rewrite: (body: string) => string,
): BodyMutation {
  return {
    rule,
    name,
    apply(draft) {
      draft.rewrite = rewrite;
      return fits(draft);
    },
  };
}
