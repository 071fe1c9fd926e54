import type { CacheMiss } from "../../../../core/cache-miss.ts";
import { KnownPrompts, missOf, type NewPrompt, type MissDraft } from "../../cache/known-prompts.ts";

/** A task as the watch needs it. */
interface WatchedTask {
  readonly owner: string | undefined;
  readonly prompt: readonly number[];
  readonly outlined: Pick<NewPrompt, "outline" | "reasoningMarkers">;
  readonly usesCache: boolean;
  readonly reportsPrompt: boolean;
}

/** Reports for each request why its prompt is not in the cache, if a large part of it could be. */
export class CacheWatch {
  readonly #known: KnownPrompts;
  readonly #onMiss: (id: number, miss: CacheMiss) => void;

  constructor(bytesOf: (token: number) => Uint8Array, onMiss: (id: number, miss: CacheMiss) => void) {
    this.#known = new KnownPrompts(bytesOf);
    this.#onMiss = onMiss;
  }

  /** A task is about to be assigned to a slot. `cached`: the tokens of all sequences and cached states before that. */
  assigned(slot: number, task: WatchedTask, cached: readonly (readonly number[])[]): MissDraft | null {
    const { owner, prompt: tokens, outlined } = task;
    const draft = this.#known.beforeSlotChange(slot, { owner, tokens, ...outlined }, cached);
    return task.usesCache && task.reportsPrompt ? draft : null;
  }

  /** The task has started, with this number of prompt tokens in the cache. */
  started(id: number, draft: MissDraft | null, cachedTokens: number): void {
    const miss = draft && missOf(draft, cachedTokens);
    if (miss) this.#onMiss(id, miss);
  }
}
