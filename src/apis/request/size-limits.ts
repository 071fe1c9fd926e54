/**
 * The maximum sizes of a request. Real requests are far below them; larger ones would delay other requests. docs/serving.md lists them.
 */

/** Messages of a conversation, or items of an input. */
export const maxMessages = 20_000;
/** Parts, blocks or items of one message; choices, results and sources within it. */
export const maxParts = 5000;
/** Calls of one message. */
export const maxCalls = 5000;
/** OpenAI accepts 128; coding agents with many tool servers send hundreds. */
export const maxTools = 4096;
/** Characters that a response repeats of its request: instructions, tools, formats. */
export const maxRepeatedLength: number = 4 * 1024 * 1024;
/** Unknown members: each is forwarded to the engine. */
export const maxUnknownMembers = 1000;
