/**
 * How much of something a request may have. No real request comes near these; more of it costs others their turn. docs/serving.md tells
 * them.
 */

/** Messages of a conversation, or items of an input. */
export const mostMessages = 20_000;
/** Parts, blocks or items of one message; choices, results and sources within it. */
export const mostParts = 5000;
/** Calls of one message. */
export const mostCalls = 5000;
/** OpenAI takes 128; coding agents with many tool servers send hundreds. */
export const mostTools = 4096;
/** Characters that a response repeats of its request: instructions, tools, formats. */
export const mostRepeated: number = 4 * 1024 * 1024;
/** Members that nobody here knows: each goes on to whoever answers. */
export const mostUnknown = 1000;
