import type { Engine } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { MaskedEvents } from "./mask.ts";
import type { Mask } from "./mask.ts";

/** What generates, without the secrets of the configuration in what it says. */
export function maskedEngine(engine: Pick<Engine, "generate">, mask: Mask): Pick<Engine, "generate"> {
  return mask.isEmpty ? engine : { generate: (request, observer) => maskedGeneration(engine, request, observer, mask) };
}

function maskedGeneration(
  engine: Pick<Engine, "generate">,
  request: GenerationRequest,
  observer: GenerationObserver | undefined,
  mask: Mask,
): AsyncIterable<readonly GenerationEvent[]> {
  return {
    [Symbol.asyncIterator]() {
      const source = engine.generate(request, observer)[Symbol.asyncIterator]();
      const masked = new MaskedEvents(mask);
      return {
        async next() {
          for (;;) {
            const step = await source.next();
            if (step.done === true) return step;
            const value = masked.read(step.value);
            // A batch of which all is held back waits for the next one.
            if (value.length > 0) return { done: false, value };
          }
        },
        async return() {
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
