import { contentRules } from "./content-rules.ts";
import { endingRules } from "./ending-rules.ts";
import type { MessageRule } from "./message-view.ts";
import { obedienceRules } from "./obedience-rules.ts";

/** Every rule about a message of the Messages API, streamed or not. */
export const messageRules: readonly MessageRule[] = [...contentRules, ...endingRules, ...obedienceRules];
