import type { NativeContext, PassResult } from "./c-api/native-context.ts";
import type { Runner } from "./job.ts";
import type { Pass } from "./pass-planner.ts";

/** A pass that takes longer is made in a thread beside, so that this one hears who leaves and who comes. In milliseconds. */
const longPass = 20;
/** What is left of a pass must take longer if it is to be made once more without those who have left, in milliseconds. */
const worthRepeating = 50;

/** Makes passes, the long ones in a thread beside, and ends those that are for nobody any more. */
export class RunningPass {
  readonly #context: NativeContext;
  readonly #clock: () => number;
  /** The pass in the other thread. `again`: the one before it was ended. */
  #underWay:
    | {
        readonly pass: Pass<Runner>;
        readonly expectedMs: number;
        readonly started: number;
        readonly again: boolean;
      }
    | undefined;
  #isAborted = false;

  /** `clock`: milliseconds that computing has taken so far. */
  constructor(context: NativeContext, clock: () => number) {
    this.#context = context;
    this.#clock = clock;
  }

  /** The pass in the other thread: until it ends nothing of the context's memory may be touched. */
  get underWay(): Pass<Runner> | undefined {
    return this.#underWay?.pass;
  }

  /** Evaluates the batch. Throws an Error if that fails. */
  async make(pass: Pass<Runner>, expectedMs: number): Promise<PassResult> {
    if (expectedMs < longPass) {
      // Messages are read between passes.
      await new Promise((resolve) => setImmediate(resolve));
      return this.#context.pass();
    }
    this.#underWay = { pass, expectedMs, started: this.#clock(), again: this.#isAborted };
    try {
      const result = await this.#context.passBeside();
      this.#isAborted = result === "aborted";
      return result;
    } finally {
      this.#underWay = undefined;
    }
  }

  /** A request was cancelled: ends the pass if it is for nobody now. */
  endIfForNobody(): void {
    if (this.#isForNobody()) this.#context.abort();
  }

  /**
   * The pass that is under way is for clients who have left; or most of it is, it goes on for long, and others' part of it can be made
   * once more: not twice in a row, or clients who come and leave would hold up the others.
   */
  #isForNobody(): boolean {
    if (!this.#underWay) return false;
    const { pass, expectedMs, started, again } = this.#underWay;
    const { shares } = pass;
    const left = shares.filter(({ who }) => who.request.cancelled);
    if (left.length === shares.length) return true;
    const tokens = (of: typeof shares): number => of.reduce((sum, { piece }) => sum + piece.tokens.length, 0);
    if (again || this.#context.model.isRecurrent || 2 * tokens(left) < tokens(shares)) return false;
    return started + expectedMs - this.#clock() > worthRepeating;
  }
}
