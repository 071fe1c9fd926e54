import type { Cursor } from "./cursor.ts";
import type { Output } from "./output.ts";
import type { Plan } from "./plan.ts";
import type { ToolTypes } from "./tool-types.ts";

/** What every part of the reading works with. */
export interface Desk {
  readonly cursor: Cursor;
  readonly output: Output;
  readonly plan: Plan;
  readonly types: ToolTypes;
  readonly callsAllowed: boolean;
}

/** A call whose head was read. It is announced when its arguments look like arguments. */
export class CallAtHand {
  readonly name: string;
  readonly id: string | undefined;
  announced = false;
  readonly #desk: Desk;

  constructor(desk: Desk, name: string, id?: string) {
    this.#desk = desk;
    this.name = name;
    this.id = id;
  }

  announce(): void {
    if (this.announced) return;
    this.announced = true;
    this.#desk.output.startCall(this.name, this.#desk.cursor.take(), this.id);
  }

  /** A piece of the arguments' JSON: it stands for all that was passed and not accounted for. */
  arguments(json: string): void {
    this.announce();
    this.#desk.output.callArguments(json, this.#desk.cursor.take());
  }

  end(status: "succeeded" | "failed"): void {
    this.announce();
    this.#desk.output.endCall(status, this.#desk.cursor.take());
  }
}

/** How a part of the reading that tried to read a call came out. "none": nothing went out, all that was passed is pending. */
export type CallOutcome = "read" | "failed" | "none";
