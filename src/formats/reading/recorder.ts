import type { Reading } from "./cursor.ts";
import type { CallDesk, CallOutcome, CallOutput } from "./desk.ts";

/** Keeps what a call would have sent, until it is certain to be one. */
class Recorder implements CallOutput {
  readonly #steps: ((output: CallOutput) => void)[] = [];
  readonly #raw: string[] = [];
  readonly #output: CallOutput;

  constructor(output: CallOutput) {
    this.#output = output;
  }

  startCall(name: string, raw: string, id?: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.startCall(name, raw, id));
  }

  callArguments(json: string, raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.callArguments(json, raw));
  }

  endCall(status: "succeeded" | "failed", raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.endCall(status, raw));
  }

  markup(raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.markup(raw));
  }

  closer(raw: string): void {
    this.#raw.push(raw);
    this.#steps.push((output) => output.closer(raw));
  }

  isKnown(name: string): boolean {
    return this.#output.isKnown(name);
  }

  unknown(name: string): void {
    this.#output.unknown(name);
  }

  replay(): void {
    for (const step of this.#steps) step(this.#output);
  }

  get raw(): string {
    return this.#raw.join("");
  }
}

/**
 * Reads calls that are not certain before their end, and lets them out when they are; `sure` says whether they are, where that takes
 * more than that they were read. Otherwise all of it is pending again.
 */
export function* recordCall(
  desk: CallDesk,
  read: (recording: CallDesk) => Reading<CallOutcome>,
  sure?: () => Reading<boolean>,
): Reading<CallOutcome> {
  const recorder = new Recorder(desk.output);
  const outcome = yield* read({ ...desk, output: recorder });
  if (outcome === "read" && (!sure || (yield* sure()))) {
    recorder.replay();
    return "read";
  }
  desk.cursor.giveBack(recorder.raw);
  return "none";
}
