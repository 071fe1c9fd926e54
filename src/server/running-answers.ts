import { canAnswer, type Engine } from "../core/engine.ts";

/** What `endReasoning` did. "unsupported": the source of the answer cannot end its reasoning. */
export type ReasoningEnd = "ended" | "not-reasoning" | "unsupported" | "not-running";

/** Asks the other processes of this server. */
export type EndReasoningElsewhere = (owner: string, id: string) => Promise<ReasoningEnd>;

interface RunningAnswer {
  readonly owner: string;
  readonly requestId: string;
  readonly engine: Engine;
}

/** The answers that are being generated, by the id of their request and by their own. */
export class RunningAnswers {
  readonly #answers = new Map<string, RunningAnswer>();
  readonly #elsewhere: EndReasoningElsewhere | undefined;

  constructor(elsewhere?: EndReasoningElsewhere) {
    this.#elsewhere = elsewhere;
  }

  /** An answer begins. `owner`: of its client; "" without keys. */
  begin(answer: RunningAnswer): OpenAnswer {
    const ids = [answer.requestId];
    this.#answers.set(answer.requestId, answer);
    return {
      named: (id) => {
        // A writer may be made only when the answer is complete, which then is not running any more.
        if (ids.length === 0) return;
        ids.push(id);
        this.#answers.set(id, answer);
      },
      end: () => {
        for (const id of ids.splice(0)) if (this.#answers.get(id) === answer) this.#answers.delete(id);
      },
    };
  }

  /** Ends the reasoning of an answer of this process, or of another one. Rejects with `FailureError` if its model does not respond. */
  async endReasoning(owner: string, id: string): Promise<ReasoningEnd> {
    const own = await this.endOwnReasoning(owner, id);
    return own === "not-running" && this.#elsewhere ? this.#elsewhere(owner, id) : own;
  }

  async endOwnReasoning(owner: string, id: string): Promise<ReasoningEnd> {
    const answer = this.#answers.get(id);
    if (!answer || answer.owner !== owner) return "not-running";
    const { engine, requestId } = answer;
    if (!canAnswer(engine, "end-reasoning")) return "unsupported";
    const { signal } = new AbortController();
    const ended = await engine.ask({ kind: "end-reasoning", request: { id: requestId } }, signal);
    return ended ? "ended" : "not-reasoning";
  }
}

export interface OpenAnswer {
  /** The answer's own id is known. */
  named(id: string): void;
  end(): void;
}
