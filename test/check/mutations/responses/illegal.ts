import type { IllegalChange } from "../mutation.ts";
import { eventMutations } from "./events.ts";
import { itemMutations } from "./items.ts";
import { obedienceMutations } from "./obedience.ts";
import { partMutations } from "./parts.ts";
import { profileMutations } from "./profile.ts";
import { responseMutations } from "./response.ts";
import { sameResponseMutations } from "./same.ts";
import { laneMutations } from "./lanes.ts";
import { socketMutations } from "./sockets.ts";
import { storedBodyMutations } from "./stored-bodies.ts";
import { storedMutations } from "./stored.ts";

/** Every change of an answer of the Responses API that some rule must notice. */
export const illegalResponses: readonly IllegalChange[] = [
  ...eventMutations,
  ...itemMutations,
  ...partMutations,
  ...responseMutations,
  ...obedienceMutations,
  ...profileMutations,
  ...sameResponseMutations,
  ...storedMutations,
  ...storedBodyMutations,
  ...socketMutations,
  ...laneMutations,
];
