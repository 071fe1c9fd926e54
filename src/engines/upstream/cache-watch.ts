import { digestPrompt, PromptHistory } from "../../wire/apis/prompt-history.ts";
import type { ComparedPrompt, PromptDigest, ReportedCache } from "../../wire/apis/prompt-history.ts";
import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import { estimateTokens } from "../../wire/core/estimate-tokens.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { isLong } from "../../wire/core/json-chunks.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { runSync } from "../../wire/core/steps.ts";

/** Prompts up to this many characters are digested in one step, which takes a few milliseconds. */
const maxSync = 512 * 1024;

/** Prompts of fewer tokens, as estimated, are not digested: no vendor caches beginnings of less than 1,024 tokens. */
const minWatched = 512;

/** Compares the requests of an upstream, and reports why a source found so little of a prompt in its cache. */
export class CacheWatch {
  readonly #history = new PromptHistory();

  /** Watches one generation. `report` is called at most once, when the source has reported its cached tokens. */
  watch(request: GenerationRequest, report: (miss: CacheMiss) => void): WatchedGeneration {
    return new WatchedGeneration(this.#history, request, report);
  }
}

export class WatchedGeneration {
  readonly #history: PromptHistory;
  readonly #request: GenerationRequest;
  readonly #report: (miss: CacheMiss) => void;
  #compared: Pick<ComparedPrompt, "missed"> | Promise<unknown> | undefined;
  #isReported = false;
  /** The URL of the current attempt. */
  server = "";

  constructor(history: PromptHistory, request: GenerationRequest, report: (miss: CacheMiss) => void) {
    this.#history = history;
    this.#request = request;
    this.#report = report;
  }

  /** Sees each batch of the answer. The request is noted with the first one, so that failed attempts are not. */
  read(events: readonly GenerationEvent[]): void {
    if (this.#compared === undefined && events.some((event) => event.type === "start")) this.#note();
    if (this.#isReported) return;
    for (const event of events) {
      if (event.type !== "usage") continue;
      const { promptTokens, promptDetails } = event.usage;
      const cachedTokens = promptDetails?.["cached_tokens"];
      if (typeof cachedTokens === "number") this.#compare({ promptTokens, cachedTokens });
    }
  }

  #note(): void {
    const { prompt } = this.#request;
    const begun = performance.now();
    if (estimateTokens(this.#request) < minWatched) {
      this.#compared = notCompared;
      return;
    }
    const noted = (digest: PromptDigest | undefined): void => {
      this.#compared = digest ? this.#history.sent(this.#request, digest, begun, this.server) : notCompared;
    };
    if (prompt.kind !== "chat" || !isLong(prompt.messages, maxSync)) return noted(runSync(digestPrompt(this.#request)));
    this.#compared = digestInSteps(this.#request).then(noted);
  }

  #compare(reported: ReportedCache): void {
    const compared = this.#compared;
    if (compared === undefined || this.#isReported) return;
    this.#isReported = true;
    if (compared instanceof Promise) {
      void compared.then(() => {
        this.#isReported = false;
        this.#compare(reported);
      });
      return;
    }
    const miss = compared.missed(reported);
    if (miss) this.#report(miss);
  }
}

const notCompared: Pick<ComparedPrompt, "missed"> = { missed: () => null };

/** Between the steps, other requests are served. */
async function digestInSteps(request: GenerationRequest): Promise<PromptDigest | undefined> {
  const steps = digestPrompt(request);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
