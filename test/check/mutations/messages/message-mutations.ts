import type { IllegalChange } from "../mutation.ts";
import { bodyMutations } from "./bodies.ts";
import { contentMutations } from "./contents.ts";
import { groupMutations } from "./groups.ts";
import { illegalMessageStreams } from "./illegal-streams.ts";
import { messageProfileMutations } from "./profiles.ts";

/** Every change of the Messages API that some rule must notice. */
export const messageMutations: readonly IllegalChange[] = [
  ...illegalMessageStreams,
  ...contentMutations,
  ...bodyMutations,
  ...messageProfileMutations,
  ...groupMutations,
];
