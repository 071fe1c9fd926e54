import { messageStreamRules } from "../messages/stream-rules.ts";
import type { StreamRule } from "../rule.ts";
import { responseStreamRules } from "../responses/event-rules.ts";
import { deltaRules } from "./delta.ts";
import { envelopeRules } from "./envelope.ts";
import { errorRules } from "./error.ts";
import { finishRules } from "./finish.ts";
import { framingRules } from "./framing.ts";
import { headerRules } from "./headers.ts";
import { logprobRules } from "./logprobs.ts";
import { obedienceRules } from "./obedience.ts";
import { obfuscationRules } from "./obfuscation.ts";
import { toolRules } from "./tools.ts";
import { usageRules } from "./usage.ts";
import { specStreamRules } from "../spec/spec-rules.ts";

/** Every rule about a streamed answer. */
export const streamRules: readonly StreamRule[] = [
  ...framingRules,
  ...headerRules,
  ...envelopeRules,
  ...obfuscationRules,
  ...deltaRules,
  ...toolRules,
  ...finishRules,
  ...usageRules,
  ...logprobRules,
  ...errorRules,
  ...obedienceRules,
  ...specStreamRules,
  ...messageStreamRules,
  ...responseStreamRules,
];
