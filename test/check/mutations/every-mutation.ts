import { illegalBodies } from "./body/illegal-bodies.ts";
import { legalBodies } from "./body/legal-bodies.ts";
import { diagnosisMutations, legalDiagnoses } from "./group/diagnosed.ts";
import { expectationMutations, legalExpectations } from "./group/expectations.ts";
import { legalLives, liveMutations } from "./group/live.ts";
import { legalSames, sameMutations } from "./group/same.ts";
import { legalGroups } from "./messages/groups.ts";
import { legalMessages } from "./messages/legal-messages.ts";
import { messageMutations } from "./messages/message-mutations.ts";
import type { IllegalChange, LegalChange } from "./mutation.ts";
import { geminiMutations, legalGeminis } from "./gemini/gemini-mutations.ts";
import { legalOllamas, ollamaMutations } from "./ollama/ollama-mutations.ts";
import { profileMutations } from "./profile/profile-mutations.ts";
import { illegalResponses } from "./responses/illegal.ts";
import { legalResponses } from "./responses/legal.ts";
import { illegalStreams } from "./stream/illegal-streams.ts";
import { legalStreams } from "./stream/legal-streams.ts";

/** Every change that some rule must notice. */
export const illegalChanges: readonly IllegalChange[] = [
  ...illegalStreams,
  ...illegalBodies,
  ...profileMutations,
  ...illegalResponses,
  ...expectationMutations,
  ...sameMutations,
  ...liveMutations,
  ...diagnosisMutations,
  ...messageMutations,
  ...ollamaMutations,
  ...geminiMutations,
];

/** Every change that no rule may mind. */
export const legalChanges: readonly LegalChange[] = [
  ...legalStreams,
  ...legalBodies,
  ...legalResponses,
  ...legalExpectations,
  ...legalSames,
  ...legalLives,
  ...legalDiagnoses,
  ...legalMessages,
  ...legalGroups,
  ...legalOllamas,
  ...legalGeminis,
];
