/*
 * Values that stand in for the state of a call that another model has made, or that was lost. Google documents the text:
 * https://ai.google.dev/gemini-api/docs/thought-signatures, "FAQs".
 */

const anySignature = "skip_thought_signature_validator";

/** Members that stand in for the state of a call, by the member of the call that its server demands. */
export const callStandIns = {
  extra_content: { google: { thought_signature: anySignature } },
  // In base 64: https://docs.litellm.ai/blog/gemini_3.
  provider_specific_fields: { thought_signature: btoa(anySignature) },
} as const;

/** The entry of `reasoning_details` that stands in for the state of a message's calls. Source: cline/cline#8214. */
export function detailsStandIn(callId: unknown, index: number): Readonly<Record<string, unknown>> {
  return { type: "reasoning.encrypted", data: anySignature, id: callId, format: "google-gemini-v1", index };
}
