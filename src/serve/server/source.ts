import { withoutOldest } from "../../wire/core/estimate-tokens.ts";
import { isVisible } from "../../wire/core/events.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { FallbackReason } from "../../wire/core/failure.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import { Relay } from "../../wire/core/relay.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { withFallbacks } from "./fallbacks.ts";
import type { Generate } from "./fallbacks.ts";
import type { ModelView, ServedModel } from "./model-directory.ts";

type Batch = readonly GenerationEvent[];

export interface SourceOptions {
  readonly model: ServedModel;
  /** The models that the client may use. */
  readonly directory: ModelView;
  /** Called when a fallback is asked, with its name and the failure before. */
  readonly onFallback: (name: string, reason: FallbackReason) => void;
  /**
   * Called with the number of messages before and after the oldest ones were left out, for requests that ask for it (`limits.overflow`)
   * and whose prompt is too long. Absent: no message is left out.
   */
  readonly onTruncated?: (before: number, after: number) => void;
}

/**
 * Returns what starts the generations of a request for its writers. This is the only place where an engine's generation becomes the stream
 * that they read: until the first visible event, a `Relay` may replace the model by its fallbacks, and the prompt by a shorter one.
 */
export function sourceOf({ model, directory, onFallback, onTruncated }: SourceOptions): Generate {
  const generate = withFallbacks(model, directory, onFallback);
  if (!onTruncated) return generate;
  return (request, observer) =>
    request.limits.overflow === "drop-oldest"
      ? new Relay((relay) => fitted(relay, generate, request, observer, onTruncated))
      : generate(request, observer);
}

/** Leaves out the oldest messages of a request until its prompt is short enough. Resolves with the first batch of the answer. */
async function fitted(
  relay: Relay,
  generate: Generate,
  request: GenerationRequest,
  observer: GenerationObserver | undefined,
  onTruncated: (before: number, after: number) => void,
): Promise<Batch> {
  for (let asked = request; ;) {
    const batch = await relay.ask(() => generate(asked, observer));
    const shorter = shortened(asked, batch);
    if (!shorter) return batch;
    onTruncated(messageCount(asked), messageCount(shorter));
    asked = shorter;
  }
}

/** The request without its oldest messages, if the first batch says that the prompt is too long and contains nothing of an answer. */
function shortened(request: GenerationRequest, first: Batch): GenerationRequest | null {
  const last = first.at(-1);
  if (last?.type !== "end" || !("failure" in last.end) || last.end.failure.kind !== "context-overflow") return null;
  return first.some(isVisible) ? null : withoutOldest(request, last.end.failure);
}

function messageCount({ prompt }: GenerationRequest): number {
  return prompt.kind === "chat" ? prompt.messages.length : 0;
}
