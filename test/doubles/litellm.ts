import { FailureError, invalidRequest } from "../../src/wire/core/failure.ts";
import { portOf } from "../../src/judge/between/facts.ts";
import { readAsVendor } from "../../src/judge/between/vendor.ts";
import { exact } from "../../src/wire/apis/profile.ts";
import { listOf, pieces, signer } from "./chat-server.ts";
import type { ChatServer, Json, Refusal } from "./chat-server.ts";
import { forAnthropic, LitellmRefusal } from "./litellm-request.ts";
import type { Step } from "./task.ts";

/*
 * LiteLLM with a Claude behind it, in the words of LiteLLM 1.108.7, which was asked with the double of Anthropic behind it on 2026-12-01
 * (`npm run interop -- doubles litellm`). Messages have `reasoning_content` and `thinking_blocks`; these are demanded back. A stream has one
 * block for each delta of the server behind it, without a signature until the last (BerriAI/litellm#29428): the blocks without a signature are
 * left out when they come back, so that a client that returns what it has collected loses the text of the reasoning, and is refused nothing.
 */

/** A server with a key of its own. `thinks`: its configuration has `thinking`, so that the model thinks unasked. */
export function litellm({ thinks = true }: { readonly thinks?: boolean } = {}): ChatServer {
  const { sign, isValid } = signer("litellm");
  const blocksOf = ({ reasoning }: Step): Json[] =>
    reasoning === undefined ? [] : [{ type: "thinking", thinking: reasoning, signature: sign(reasoning) }];
  /** The signature covers the text; Anthropic takes a block whose text was left out. */
  const isOwn = ({ thinking, signature }: Json): boolean =>
    thinking === "" ? String(signature).length === sign("").length : isValid(signature, thinking);
  return {
    name: "LiteLLM",
    model: "claude-by-litellm",
    owner: "openai",
    created: 1_677_610_602,
    refusal: (body) => refusalOf(body, thinks, isOwn),
    lost: (body) =>
      listOf(body["messages"]).flatMap(({ thinking_blocks: blocks }, at) =>
        listOf(blocks).some(({ thinking, signature }) => thinking !== "" && (signature ?? "") === "")
          ? [`the text of the reasoning in messages.${at}: its blocks have no signature`]
          : [],
      ),
    message: (step) => ({
      ...(step.reasoning !== undefined && { reasoning_content: step.reasoning, thinking_blocks: blocksOf(step) }),
    }),
    deltas: (step) =>
      blocksOf(step).flatMap(({ thinking, signature }): Json[] => [
        ...pieces(String(thinking)).map((piece) => reasoningDelta({ type: "thinking", thinking: piece, index: 0 })),
        reasoningDelta({ type: "thinking", thinking: "", signature, index: 0 }),
      ]),
  };
}

function reasoningDelta(block: Json): Json {
  const blocks = { thinking_blocks: [block] };
  return { reasoning_content: block["thinking"], ...blocks, provider_specific_fields: blocks, content: "" };
}

const headers: Readonly<Record<string, string>> = {
  "anthropic-version": "2023-06-01",
  "anthropic-beta": "structured-outputs-2025-11-13",
};

/** What LiteLLM refuses itself, or what Anthropic refuses of the body that LiteLLM makes. */
function refusalOf(body: Json, thinks: boolean, isOwn: (block: Json) => boolean): Refusal | undefined {
  try {
    const sent = forAnthropic(body, thinks);
    for (const [at, { content }] of (sent["messages"] as Json[]).entries())
      for (const [index, block] of (content as Json[]).entries())
        if (block["type"] === "thinking" && !isOwn(block))
          throw invalidRequest(`messages.${at}.content.${index}: Invalid \`signature\` in \`thinking\` block`);
    readAsVendor("messages", sent, { header: (name) => headers[name] });
    return undefined;
  } catch (error) {
    if (error instanceof FailureError) return fromAnthropic(body, error);
    if (!(error instanceof LitellmRefusal)) throw error;
    return refusedBy(body, error);
  }
}

function fromAnthropic(body: Json, { failure }: FailureError): Refusal {
  const raw = portOf("messages").errorFormat.writeFailure(failure, exact, "req_double", (name) => headers[name]).body;
  return refusedBy(body, new LitellmRefusal(400, `litellm.BadRequestError: AnthropicException - ${raw}`));
}

function refusedBy({ model }: Json, { status, message, isOfProxy }: LitellmRefusal): Refusal {
  // Other errors were tried again, and the words of the last attempt have no such end.
  const isOfGroup = status === 400 && !isOfProxy;
  const end = `\n\nLiteLLM: model group '${String(model)}' failed with the error above. No fallback was attempted.`;
  const type = status === 400 ? "invalid_request_error" : "internal_server_error";
  const error = { message: isOfGroup ? message + end : message, type, param: null, code: String(status) };
  return { status, body: { error } };
}
