import { undefinedValue, type Value } from "./values.ts";

/** Variables, and where to look for those that are not here. */
export class Scope {
  readonly #variables = new Map<string, Value>();
  readonly #parent: Scope | null;

  constructor(parent: Scope | null) {
    this.#parent = parent;
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value);
  }

  get(name: string): Value {
    return this.#variables.get(name) ?? this.#parent?.get(name) ?? undefinedValue;
  }
}
