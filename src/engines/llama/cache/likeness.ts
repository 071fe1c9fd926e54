import { isSystem } from "./prompt-outline.ts";
import type { PromptOutline } from "./prompt-outline.ts";
import { sharedLength } from "./shared-pieces.ts";

/**
 * How much of a prompt an earlier one has, in characters, wherever it stands: what might have been read from the cache. 0: they have
 * nothing to do with each other. Made once for the prompt that is asked.
 */
export function likenessTo(asked: PromptOutline): (known: PromptOutline) => number {
  const messages = new Set(asked.messages.map(({ hash }) => hash));
  const tools = new Set(asked.tools.map(({ hash }) => hash));
  return (known) => {
    let shared = 0;
    const seen = new Set<number>();
    for (const [at, message] of known.messages.entries()) {
      const now = asked.messages[at];
      if (messages.has(message.hash)) {
        // What is said again and again ("Go on.") makes no conversation alike.
        if (!seen.has(message.hash)) shared += message.length;
        seen.add(message.hash);
      } else if (now && isSystem(now) === isSystem(message)) shared += sharedLength(message, now);
    }
    for (const { hash, length } of known.tools) if (tools.has(hash)) shared += length;
    return shared;
  };
}
