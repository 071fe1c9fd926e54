import type { CacheMiss } from "../../../wire/core/cache-miss.ts";
import { conversationKey } from "../../../wire/core/conversation-key.ts";
import { digestText } from "../../../wire/core/digest.ts";
import { estimateTokens } from "../../../wire/core/estimate-tokens.ts";
import type { HookRunner } from "../../../wire/core/hook.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";

/** A hook, and what it let pass. */
export type ServedHook = HookRunner & { readonly prefixes: HookPrefixes };

const maxConversations = 1000;

/** What a hook let pass of the latest request of each conversation. */
export class HookPrefixes {
  readonly #known = new Map<
    string,
    { readonly given: readonly string[]; readonly sent: readonly string[]; readonly warned: boolean }
  >();

  /** The cache miss that a hook causes: of messages that the client sends as before, the first one that it lets pass in another form. Once for each conversation. */
  missOf(given: GenerationRequest, sent: GenerationRequest): CacheMiss | undefined {
    if (given.prompt.kind !== "chat" || sent.prompt.kind !== "chat") return undefined;
    const digests = ({ prompt }: GenerationRequest): readonly string[] =>
      prompt.kind === "chat"
        ? prompt.messages.map((message) => digestText(JSON.stringify({ ...message, path: undefined })))
        : [];
    const key = conversationKey(given);
    const [own, passed] = [digests(given), given === sent ? undefined : digests(sent)];
    const now = { given: own, sent: passed ?? own };
    const before = this.#known.get(key);
    this.#known.delete(key);
    const at = before && !before.warned ? now.sent.findIndex((digest, place) => digest !== before.sent[place]) : -1;
    const isHooks =
      before !== undefined &&
      at !== -1 &&
      at < before.given.length &&
      before.given.slice(0, at + 1).every((digest, place) => digest === own[place]);
    this.#known.set(key, { ...now, warned: isHooks || before?.warned === true });
    const [oldest = ""] = this.#known.keys();
    if (this.#known.size > maxConversations) this.#known.delete(oldest);
    if (!isHooks) return undefined;
    const beginning = { ...sent, prompt: { ...sent.prompt, messages: sent.prompt.messages.slice(0, at) } };
    return {
      cause: "hook",
      where: `messages[${at}]`,
      at: estimateTokens(beginning),
      cachedTokens: 0,
      promptTokens: estimateTokens(sent),
    };
  }
}
