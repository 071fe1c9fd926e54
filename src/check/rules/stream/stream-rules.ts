import { messageStreamRules } from "../messages/stream-rules.ts";
import type { StreamRule } from "../rule.ts";
import { responseStreamRules } from "../responses/every-response-rule.ts";
import { deltaRules } from "./delta.ts";
import { envelopeRules } from "./envelope.ts";
import { errorRules, finishRules } from "./finish.ts";
import { framingRules, headerRules } from "./framing.ts";
import { logprobRules } from "./logprobs.ts";
import { obfuscationRules } from "./obfuscation.ts";
import { requestRules } from "./request-rules.ts";
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
  ...requestRules,
  ...specStreamRules,
  ...messageStreamRules,
  ...responseStreamRules,
];
