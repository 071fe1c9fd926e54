import type { UserText } from "../user-text.ts";

/** What one rendering has of its own. */
export interface Rendering {
  readonly user: UserText;
  readonly now: Date;
}
