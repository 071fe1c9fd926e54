import { canAnswer, type Engine } from "../../wire/core/engine.ts";
import { OpenList, type Placed } from "../../wire/core/open-list.ts";

/** What `endReasoning` did. "unsupported": the source of the answer cannot end its reasoning. */
export type ReasoningEnd = "ended" | "not-reasoning" | "unsupported" | "not-running";

interface RunningAnswer {
  readonly owner: string;
  readonly requestId: string;
  readonly engine: Engine;
}

/** The answers that are being generated. Each is found by the id of its request and by its own, which is seldom done. */
export class RunningAnswers {
  readonly #answers = new OpenList<OpenAnswer>();

  /** An answer begins. `owner`: of its client; "" without keys. */
  begin(answer: RunningAnswer): OpenAnswer {
    const open = new OpenAnswer(answer, (ended) => this.#answers.delete(ended));
    this.#answers.add(open);
    return open;
  }

  /** Ends the reasoning of an answer. Rejects with `FailureError` if its model does not respond. */
  async endReasoning(owner: string, id: string): Promise<ReasoningEnd> {
    const answer = this.#find(owner, id);
    if (!answer) return "not-running";
    const { engine, requestId } = answer;
    if (!canAnswer(engine, "end-reasoning")) return "unsupported";
    const { signal } = new AbortController();
    const ended = await engine.ask({ kind: "end-reasoning", request: { id: requestId } }, signal);
    return ended ? "ended" : "not-reasoning";
  }

  #find(owner: string, id: string): RunningAnswer | undefined {
    for (const { answer, id: own } of this.#answers)
      if (answer.owner === owner && (answer.requestId === id || own === id)) return answer;
    return undefined;
  }
}

/** An answer that is being generated. */
export class OpenAnswer implements Placed {
  place = -1;
  readonly answer: RunningAnswer;
  readonly #onEnd: (ended: OpenAnswer) => void;
  /** Its own id; undefined until it is known. */
  id: string | undefined;

  constructor(answer: RunningAnswer, onEnd: (ended: OpenAnswer) => void) {
    this.answer = answer;
    this.#onEnd = onEnd;
  }

  end(): void {
    this.#onEnd(this);
  }
}
