import type { CacheMiss } from "../../../../core/cache-miss.ts";
import { KnownPrompts, missOf, type MissDraft } from "../../cache/known-prompts.ts";
import type { Choice } from "../slot/task.ts";

/** Tells of each request why its prompt is not in the cache, if much of it could be. */
export class CacheWatch {
  readonly #known: KnownPrompts;
  readonly #tell: (id: number, miss: CacheMiss) => void;

  constructor(bytesOf: (token: number) => Uint8Array, tell: (id: number, miss: CacheMiss) => void) {
    this.#known = new KnownPrompts(bytesOf);
    this.#tell = tell;
  }

  /** A choice is about to get a slot; `slots`: the tokens that each one knows, before that. */
  takes(
    slot: number,
    { choice, owner }: { readonly choice: Choice; readonly owner: string | undefined },
    slots: readonly (readonly number[])[],
  ): MissDraft | null {
    const draft = this.#known.takes(slot, { owner, tokens: choice.prompt, ...choice.outlined }, slots);
    return choice.usesCache && choice.tellsOfPrompt ? draft : null;
  }

  /** It has it. */
  began(id: number, draft: MissDraft | null, cachedTokens: number): void {
    const miss = draft && missOf(draft, cachedTokens);
    if (miss) this.#tell(id, miss);
  }
}
