import { outlineRequest, PromptHistory } from "../../wire/apis/prompt-history.ts";
import type { ComparedPrompt, ReportedCache } from "../../wire/apis/prompt-history.ts";
import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import { estimateTokens } from "../../wire/core/estimate-tokens.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { isLong } from "../../wire/core/json-chunks.ts";
import type { PromptOutline } from "../../wire/core/prompt-outline.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { runSync } from "../../wire/core/steps.ts";

/** Prompts up to this many characters are outlined in one step, which takes a few milliseconds. */
const maxSync = 512 * 1024;

/** Prompts of fewer tokens, as estimated, are not outlined: no vendor caches beginnings of less than 1,024 tokens. */
const minWatched = 512;

/** Compares the requests of an upstream, and reports why a source found so little of a prompt in its cache. */
export class CacheWatch {
  readonly #history = new PromptHistory();

  /** Watches one generation. `report` is called at most once, when the source has reported its cached tokens. */
  watch(request: GenerationRequest, report: (miss: CacheMiss) => void): WatchedGeneration {
    return new WatchedGeneration(this.#history, request, report);
  }
}

type Compared = Pick<ComparedPrompt, "missed"> | undefined;

export class WatchedGeneration {
  readonly #history: PromptHistory;
  readonly #request: GenerationRequest;
  readonly #report: (miss: CacheMiss) => void;
  /** Absent until the answer starts. */
  #compared: { readonly with: Compared | Promise<Compared> } | undefined;
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
    if (this.#isReported) return;
    if (!this.#compared && events.some((event) => event.type === "start")) this.#compared = { with: this.#note() };
    for (const event of events) {
      if (event.type !== "usage" || this.#isReported || !this.#compared) continue;
      const { promptTokens, promptDetails } = event.usage;
      const cachedTokens = promptDetails?.["cached_tokens"];
      if (typeof cachedTokens !== "number") continue;
      this.#isReported = true;
      const compared = this.#compared.with;
      const compare = (found: Compared): void => this.#compare(found, { promptTokens, cachedTokens });
      if (compared instanceof Promise) void compared.then(compare);
      else compare(compared);
    }
  }

  #note(): Compared | Promise<Compared> {
    const { prompt } = this.#request;
    const begun = performance.now();
    if (prompt.kind !== "chat" || estimateTokens(this.#request) < minWatched) return undefined;
    const noted = (outline: PromptOutline | undefined): Compared =>
      outline && this.#history.sent(this.#request, outline, begun, this.server);
    if (!isLong(prompt.messages, maxSync)) return noted(runSync(outlineRequest(this.#request)));
    return outlineInSteps(this.#request).then(noted);
  }

  #compare(compared: Compared, reported: ReportedCache): void {
    const miss = compared?.missed(reported);
    if (miss) this.#report(miss);
  }
}

/** Between the steps, other requests are served. */
async function outlineInSteps(request: GenerationRequest): Promise<PromptOutline | undefined> {
  const steps = outlineRequest(request);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
