import { messageProfileRules } from "../messages/profile-rules.ts";
import { deltaRules } from "./delta-rules.ts";
import { layoutRule } from "./layout-rule.ts";
import { memberRules } from "./member-rules.ts";
import type { ProfileRule } from "./profile-rule.ts";
import { responseProfileRules } from "../responses/profile-rules.ts";
import { valueRules } from "./value-rules.ts";

/** Every rule that holds only when a profile was demanded. */
export const profileRules: readonly ProfileRule[] = [
  layoutRule,
  ...memberRules,
  ...deltaRules,
  ...valueRules,
  ...messageProfileRules,
  ...responseProfileRules,
];
