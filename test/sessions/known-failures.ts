/*
 * Sessions that do not work, each with its reason: the name of a session, or of a source for all of its sessions. An entry whose sessions all
 * work fails the test, too, so the list only gets shorter.
 */
export const knownFailures: Readonly<Record<string, string>> = {};

/** Sources whose prompts change between the turns of some session. */
export const changingSources: Readonly<Record<string, string>> = {
  "OpenAI, account A": "items that OpenAI keeps itself are not in the request",
};
