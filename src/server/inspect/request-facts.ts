import type { CacheMiss } from "../../core/cache-miss.ts";
import type { FailureKind, FinishReason, GenerationEnd, Usage } from "../../core/events.ts";

/** What a list of requests shows of one; the record of the request has it. */
export interface RequestFacts {
  readonly api: { readonly name: string } | undefined;
  readonly model: string | undefined;
  readonly keyName: string | undefined;
  readonly stream: boolean | undefined;
  readonly status: number | undefined;
  readonly firstMs: number | undefined;
  readonly usage: Usage | undefined;
  readonly cachedTokens: number | undefined;
  readonly cacheMiss: CacheMiss | undefined;
  readonly finishes: readonly FinishReason[];
  readonly attempts: number;
  readonly repairs: ReadonlyMap<string, number>;
  readonly end: GenerationEnd | undefined;
  readonly refusal: string | undefined;
  readonly refusalKind: FailureKind | undefined;
  readonly receivedAt: number;
}
