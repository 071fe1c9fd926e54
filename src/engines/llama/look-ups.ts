import type { GenerationFailure } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { Answer, SomeTokens } from "./protocol.ts";

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
  /** Hears what comes before the answer. */
  readonly hear: (some: SomeTokens) => void;
}

/** Questions to the model's process whose answers have not come. */
export class LookUps {
  readonly #waiting = new Map<number, Waiting>();

  get size(): number {
    return this.#waiting.size;
  }

  has(id: number): boolean {
    return this.#waiting.has(id);
  }

  /** Asks, and waits for the answer. When `signal` is aborted first, `leave` is called and the promise rejects with its reason. */
  async wait(
    id: number,
    signal: AbortSignal,
    {
      ask,
      leave,
      hear = () => {},
    }: { readonly ask: () => void; readonly leave: () => void } & Partial<Pick<Waiting, "hear">>,
  ): Promise<Answer> {
    signal.throwIfAborted();
    const left = (): void => {
      leave();
      this.#waiting.get(id)?.reject(signal.reason);
    };
    signal.addEventListener("abort", left, { once: true });
    try {
      return await new Promise<Answer>((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject, hear });
        ask();
      });
    } finally {
      this.#waiting.delete(id);
      signal.removeEventListener("abort", left);
    }
  }

  answer(id: number, answer: Answer): void {
    const waiting = this.#waiting.get(id);
    if (answer.about === "failure") waiting?.reject(new FailureError(answer.failure));
    else if (answer.about === "some-tokens") waiting?.hear(answer);
    else waiting?.resolve(answer);
  }

  /** There will be no answers. */
  fail(failure: GenerationFailure): void {
    for (const { reject } of this.#waiting.values()) reject(new FailureError(failure));
  }
}
