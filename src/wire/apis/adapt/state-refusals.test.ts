import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { UpstreamRefusal } from "./member-refusals.ts";
import { refusesState } from "./state-refusals.ts";

const refused = (message: string, status = 400, code: string | null = null): UpstreamRefusal => ({
  status,
  message,
  param: null,
  code,
});

/** What real servers say (the sources are next to the patterns), as `readFailure` passes it on. */
const wordings: readonly [message: string, status?: number][] = [
  ["messages.1.content.0: Invalid `signature` in `thinking` block"],
  ["messages.7.content.2: Invalid signature in thinking block"],
  [
    'litellm.BadRequestError: VertexAIException BadRequestError - b\'{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}\'',
    500,
  ],
  ["messages.2.content.1.thinking.signature: Field required"],
  ["messages.0.content.0.redacted_thinking.data: Field required"],
  ["messages.3.content.0: Invalid 'data' in 'redacted_thinking' block"],
  [
    "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.",
  ],
  ["The encrypted content gAAA...DQ== could not be verified."],
  [
    "The encrypted content for item rs_0a18166210d72b5e0069fd938e69a08193a992a58d690a224b could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
  ],
  [
    "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response.",
  ],
  ["Could not decode the compaction blob. Ensure it is unmodified from the compact response."],
  ["Upstream request failed: [invalid_request_error] reasoning `encrypted_content` was not issued to this caller"],
  [
    "Item 'rs_0c3876fcd4da19ef00692a14046bc8819eba6941c05c5ab7e7' of type 'reasoning' was provided without its required following item.",
  ],
  [
    "Item with id 'rs_688404f677dc81a1' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
    404,
  ],
  ["Corrupted thought signature."],
  ["[gemini-cli/gemini-3-flash-preview] [400]: Unable to submit request because Thought signature is not valid.."],
  [
    "Invalid value at 'contents[2].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"Es4DCssDAb4+9vuf\"",
  ],
  ["genai.Part.ThoughtSignature: decode base64: illegal base64 data at input byte 40"],
  ["failed to decode thinking signature, please report this bug to google: illegal base64 data at input byte 0"],
];

/** What servers refuse for another reason: the states of the request are good, or it has none. */
const others: readonly string[] = [
  "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly.",
  "Unable to submit request because function call `xxx` in the 5. content block is missing a `thought_signature`.",
  "The `reasoning_content` in the thinking mode must be passed back to the API.",
  "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
  "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
  "messages.1.content.0.thinking: each thinking block must contain thinking",
  // Without states, more items would lack their reasoning: the profile learns to send no ids.
  "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'.",
  "Invalid 'signature' in webhook header",
  "Model with id 'rs_1' not found",
  "The file content could not be verified.",
  "prompt is too long: 210000 tokens > 200000 maximum",
];

describe("refusals of the state of earlier turns", () => {
  test.each(wordings)("%s", (message, status) => {
    expect(refusesState(refused(message, status))).toBe(true);
    expect(refusesState(refused(message.toLowerCase(), status))).toBe(true);
    // A key, a quota or a wait: the same request without states is refused, too.
    for (const other of [401, 403, 429, 503]) expect(refusesState(refused(message, other))).toBe(false);
  });

  test.each(others)("is not one: %s", (message) => {
    expect(refusesState(refused(message))).toBe(false);
  });

  test("OpenAI's code says it whatever the words are", () => {
    expect(refusesState(refused("Bad Request", 400, "invalid_encrypted_content"))).toBe(true);
    expect(refusesState(refused("Bad Request", 400, "invalid_value"))).toBe(false);
  });

  test("for every text around it", () => {
    const around = fc.string({ maxLength: 300 });
    fc.assert(
      fc.property(fc.constantFrom(...wordings), around, around, ([message, status], before, after) => {
        expect(refusesState(refused(`${before}\n${message}\n${after}`, status))).toBe(true);
      }),
    );
  });
});

test("the time to read a refusal is linear in it", () => {
  const cost = (length: number): number => {
    const texts = [
      "encrypted_content ",
      "item with id 'a",
      "invalid value at '",
      "thought signature ",
      "thinking.",
    ].map((text) => text.repeat(length));
    const began = process.cpuUsage();
    for (let i = 0; i < 20; i++) for (const text of texts) refusesState(refused(text));
    return process.cpuUsage(began).user + 1;
  };
  cost(500);
  expect(cost(16_000)).toBeLessThan(Math.max(cost(1_000), 2_000) * 80);
});
