import { messageBodyRules } from "../messages/body-rules.ts";
import { responseBodyRules, socketErrorRules, tokenCountRules } from "../responses/body-rules.ts";
import type { BodyRule } from "../rule.ts";
import { answerRules } from "./answer.ts";
import { callRules } from "./call.ts";
import { failureRules } from "./failure.ts";
import { headerRules } from "./headers.ts";
import { modelRules } from "./models.ts";
import { obedienceRules } from "./obedience.ts";
import { specBodyRules } from "../spec/spec-rules.ts";

/** Every rule about an answer that is no stream. */
export const bodyRules: readonly BodyRule[] = [
  ...answerRules,
  ...callRules,
  ...obedienceRules,
  ...failureRules,
  ...modelRules,
  ...headerRules,
  ...specBodyRules,
  ...messageBodyRules,
  ...tokenCountRules,
  ...responseBodyRules,
  ...socketErrorRules,
];
