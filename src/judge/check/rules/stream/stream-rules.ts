import { messageStreamRules } from "../messages/stream-rules.ts";
import type { Rules } from "../rule.ts";
import type { StreamView } from "../view.ts";
import { responseStreamRules } from "../responses/event-rules.ts";
import { chatDeltaRules, completionTextRules } from "./delta.ts";
import { envelopeRules } from "./envelope.ts";
import { errorRules, finishRules } from "./finish.ts";
import { framingRules, streamHeaderRules } from "./framing.ts";
import { logprobRules } from "./logprobs.ts";
import { obfuscationRules } from "./obfuscation.ts";
import { streamRequestRules } from "./request-rules.ts";
import { toolRules } from "./tools.ts";
import { streamUsageRules } from "./usage.ts";
import { specStreamRules } from "../spec/spec-rules.ts";

/** Every rule about a streamed answer. */
export const streamRules: Rules<StreamView> = {
  ...framingRules,
  ...streamHeaderRules,
  ...envelopeRules,
  ...obfuscationRules,
  ...chatDeltaRules,
  ...completionTextRules,
  ...toolRules,
  ...finishRules,
  ...streamUsageRules,
  ...logprobRules,
  ...errorRules,
  ...streamRequestRules,
  ...specStreamRules,
  ...messageStreamRules,
  ...responseStreamRules,
};
