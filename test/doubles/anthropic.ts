import { createHmac } from "node:crypto";
import { type AnswerPart, answerOf, type Json, type ScriptedFailure } from "../../src/judge/between/facts.ts";
import { type PromptCharge, usageOf } from "../../src/judge/between/prompt-cache.ts";
import { startVendor } from "../../src/judge/between/vendor.ts";
import { refusalOf } from "./anthropic-rules.ts";
import type { Refusal } from "./chat-server.ts";

/*
 * A server that speaks Anthropic's Messages API and is as strict: it signs thinking with keys of its own, so that invented and foreign
 * signatures are refused, and it charges for prompts as Anthropic does (src/judge/between).
 */

/**
 * The price of prompts in multiples of the price of an uncached token. Source: the pricing table of
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
 */
export function promptPrice(charges: readonly PromptCharge[]): number {
  return charges.reduce((sum, { total, read, written: { hour, short } }) => {
    const full = total - read - hour - short;
    return sum + full + read * 0.1 + short * 1.25 + hour * 2;
  }, 0);
}

/** The share of all prompts' tokens that was read from the cache: 0 to 1. */
export function cachedShare(charges: readonly PromptCharge[]): number {
  const sum = (member: "total" | "read"): number => charges.reduce((all, one) => all + one[member], 0);
  return sum("total") === 0 ? 0 : sum("read") / sum("total");
}

/** What the model answers. Blocks come in the order of the members. */
export interface DoubleTurn {
  /** Sent only if the request lets the model think. */
  readonly thinking?: string;
  /** The thinking has no text: a `redacted_thinking` block. */
  readonly redacted?: boolean;
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly input: Json }[];
}

export interface AnthropicDoubleOptions {
  /** Accounts by their keys. Signatures and caches of one account mean nothing to another. */
  readonly accounts: Readonly<Record<string, string>>;
  /** The answer to an accepted request; `index`: how many were accepted before. */
  answer(body: Json, index: number): DoubleTurn;
  /** Default 1,024, as of most models. */
  readonly minCachedTokens?: number;
  /** Milliseconds; default: time stands still. */
  now?(): number;
  /** Members that the platform refuses: `cache_control` for Amazon Bedrock and Vertex AI. */
  readonly refusedMembers?: readonly string[];
  /** What it refuses besides. */
  refusal?(body: Json): Refusal | undefined;
  /** The tokens that it counts of each prompt; default: a token is four characters. `false`: it has no `count_tokens`, as Ollama. */
  readonly counted?: number | false;
}

export interface AnthropicDouble {
  /** The base URL, `/v1` included. */
  readonly url: string;
  /** Bodies that were accepted, in order. */
  readonly requests: readonly Json[];
  /** The text of each body in `requests`. */
  readonly texts: readonly string[];
  /** The words of refusals, in order. */
  readonly refusals: readonly string[];
  /** What each accepted request was charged for its prompt. */
  readonly usages: readonly PromptCharge[];
  /** Bodies of `count_tokens` that were accepted, in order. */
  readonly counts: readonly Json[];
  close(): Promise<void>;
}

/** Starts the server on loopback. */
export async function startAnthropic(options: AnthropicDoubleOptions): Promise<AnthropicDouble> {
  const { accounts, minCachedTokens = 1024, now = () => 0, refusedMembers = [], counted } = options;
  const requests: Json[] = [];
  const texts: string[] = [];
  const refusals: string[] = [];
  const usages: PromptCharge[] = [];
  const counts: Json[] = [];

  const refuse = (status: number, type: string, message: string): ScriptedFailure => {
    refusals.push(message);
    return { status, body: { type: "error", error: { type, message }, request_id: "req_double" } };
  };
  const { url, close } = await startVendor({
    apis: ["messages"],
    port: 0,
    account: (key) => accounts[key] ?? "",
    leastCachedTokens: minCachedTokens,
    now,
    ...(counted !== undefined && { counted }),
    refusal({ key, headers, body = {}, counts: isCount }) {
      const account = accounts[key];
      if (account === undefined) return refuse(401, "authentication_error", "invalid x-api-key");
      if (headers["anthropic-version"] === undefined)
        return refuse(400, "invalid_request_error", "anthropic-version: header is required");
      const refused = refusalOf(body, { isOwn: (block) => isOwn(account, block), refusedMembers });
      if (refused !== undefined) return refuse(400, "invalid_request_error", refused);
      const further = isCount ? undefined : options.refusal?.(body);
      if (further) refusals.push(JSON.stringify(further.body));
      return further && { status: further.status, body: further.body as Json };
    },
    onRequest({ refusal, counts: isCount, body = {} }) {
      if (refusal) refusals.push(refusal.message);
      else if (isCount) counts.push(body);
    },
    answer({ key, body = {}, text }, charge) {
      const index = requests.push(body) - 1;
      texts.push(text);
      usages.push(charge);
      const parts = partsOf(options.answer(body, index), body, { account: accounts[key] ?? "", index });
      const usage = usageOf(charge, Math.ceil(JSON.stringify(parts).length / 4));
      return { batches: answerOf(parts, { usage, least: 9 }) };
    },
  });
  return { url: `${url}/v1`, requests, texts, refusals, usages, counts, close };
}

const secret = "the double's own key, which no client and no gateway knows";

function codeOf(account: string, kind: string, text: string): string {
  return createHmac("sha256", secret)
    .update(JSON.stringify([account, kind, text]))
    .digest("base64");
}

/** A signature contains the thinking, as the real one does: a block may come back without its text (`display: "omitted"`). */
function signatureOf(account: string, text: string): string {
  const content = Buffer.from(text).toString("base64");
  return Buffer.from(`${content}.${codeOf(account, "thinking", text)}`).toString("base64");
}

function isSignature(account: string, text: string, signature: string): boolean {
  const [content = ""] = Buffer.from(signature, "base64").toString().split(".");
  const signed = Buffer.from(content, "base64").toString();
  return signature === signatureOf(account, signed) && (text === signed || text === "");
}

function redactedOf(account: string, text: string): string {
  const content = Buffer.from(text).toString("base64");
  return Buffer.from(`${content}.${codeOf(account, "redacted", text)}`).toString("base64");
}

function isRedacted(account: string, data: string): boolean {
  const [content = ""] = Buffer.from(data, "base64").toString().split(".");
  return data === redactedOf(account, Buffer.from(content, "base64").toString());
}

function isOwn(account: string, block: Json): boolean {
  return block["type"] === "thinking"
    ? isSignature(account, String(block["thinking"]), String(block["signature"]))
    : isRedacted(account, String(block["data"]));
}

function partsOf(
  { thinking: text, redacted = false, text: said, calls = [] }: DoubleTurn,
  body: Json,
  { account, index }: { readonly account: string; readonly index: number },
): AnswerPart[] {
  const { type = "disabled" } = (body["thinking"] ?? {}) as Json;
  const reasoning: AnswerPart = redacted
    ? { reasoning: "", state: { kind: "redacted", value: redactedOf(account, text ?? "") } }
    : { reasoning: text ?? "", state: { kind: "signature", value: signatureOf(account, text ?? "") } };
  const letters = (at: number): string => codeOf(account, "id", `${index} ${at}`).replace(/[^a-zA-Z0-9]/g, "");
  return [
    ...(text !== undefined && type !== "disabled" ? [reasoning] : []),
    ...(said === undefined ? [] : [{ text: said }]),
    ...calls.map(({ name, input }, at) => ({
      id: `toolu_01${letters(at).slice(0, 22)}`,
      name,
      arguments: JSON.stringify(input),
    })),
  ];
}
