import type { UpstreamRefusal } from "./member-refusals.ts";

/**
 * The statuses with which servers refuse the state of earlier turns. OpenAI sends 404 for an item that it has not stored; proxies send 500 or
 * 502 for what the server behind them has refused with 400.
 */
const statuses: ReadonlySet<number> = new Set([400, 404, 409, 422, 500, 502]);

/** OpenAI's code (openai/codex#8145). */
const codes: ReadonlySet<string> = new Set(["invalid_encrypted_content"]);

/** Wordings of refusals of a state that the server has not made, or no longer knows, each with its source. */
const wordings: readonly RegExp[] = [
  // Anthropic: "messages.1.content.0: Invalid `signature` in `thinking` block" (anthropics/claude-code#10627); without the marks: Bedrock
  // (linanwx/nagobot#21). Through OpenRouter (can1357/oh-my-pi#3399) and Vertex (lbjlaq/Antigravity-Manager#498).
  /invalid [`'"]?signature[`'"]? in [`'"]?thinking[`'"]? block/i,
  // Anthropic: "messages.2.content.1.thinking.signature: Field required" (JohnnyZ93/oai-compatible-copilot#217),
  // "messages.0.content.0.redacted_thinking.data: Field required" (diegosouzapw/OmniRoute#2191).
  /\b(?:thinking\.signature|redacted_thinking\.data): /i,
  // Anthropic: "Invalid 'data' in 'redacted_thinking' block" (microsoft/vscode#320196).
  /invalid [`'"]?data[`'"]? in [`'"]?redacted_thinking[`'"]? block/i,
  // Anthropic: "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified." (anthropics/claude-code#19539)
  /[`'"]?redacted_thinking[`'"]? blocks in the latest assistant message cannot be modified/i,
  // OpenAI: "The encrypted content for item rs_… could not be verified." (anomalyco/opencode#4608), "The encrypted content gAAA…Rg== could
  // not be verified. Reason: Encrypted content could not be decrypted or parsed." (openai/codex#8132, Wei-Shaw/sub2api#2863).
  /encrypted[ _]content[^\n]{0,200}? could not be (?:verified|decrypted|parsed)/i,
  // xAI: "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response."
  // (Wei-Shaw/sub2api#4535, openclaw/openclaw#97925), "Could not decode the compaction blob." (chenyme/grok2api#688).
  /could not (?:decrypt|decode|verify) the (?:provided )?[`'"]?(?:encrypted[ _]content|compaction blob)/i,
  // OpenCode's gateway: "reasoning `encrypted_content` was not issued to this caller" (can1357/oh-my-pi#11928).
  /encrypted[ _]content[`'"]? was not issued to this/i,
  // OpenAI: "Item 'rs_…' of type 'reasoning' was provided without its required following item." (vercel/ai#7099). The reverse, "without its
  // required 'reasoning' item", teaches the profile.
  /was provided without its required [`'"]?following[`'"]? item/i,
  // OpenAI: "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false." (vercel/ai#7543)
  /item with id [`'"]?\w{1,200}[`'"]? not found/i,
  // Gemini: "Corrupted thought signature." (google-gemini/gemini-cli#13467); through OpenRouter (OpenRouterTeam/ai-sdk-provider#418). Vertex:
  // "Unable to submit request because Thought signature is not valid" (decolua/9router#301).
  /(?:corrupted|invalid|malformed|unknown) [`'"]?thought[ _]?signature/i,
  /thought[ _]?signature[`'"]? (?:is|was) (?:not valid|invalid|corrupted|malformed)/i,
  // Gemini: "Invalid value at 'contents[2].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for …" (crmne/ruby_llm#521).
  /invalid value at [`'"][\w.[\]]{0,200}thought_?signature[`'"]/i,
  // Gemini: "Part.ThoughtSignature: decode base64: illegal base64 data" (googleapis/python-genai#2105); "failed to decode thinking signature"
  // (router-for-me/CLIProxyAPIPlus#178).
  /(?:thought|thinking)[ _]?signature: (?:failed to )?decode|failed to decode (?:the )?(?:thought|thinking)[ _]?signature/i,
];

/**
 * Whether a server has refused a request because of a state of earlier turns (`TurnState`) that another server has made, that has been
 * changed, or that is no longer known. The same request without the states of earlier turns may be accepted. A refusal of a request that lacks
 * a state is none of these: it teaches the profile (`learnRefusal`).
 */
export function refusesState({ status, message, code }: UpstreamRefusal): boolean {
  if (!statuses.has(status)) return false;
  return (typeof code === "string" && codes.has(code)) || wordings.some((words) => words.test(message));
}
