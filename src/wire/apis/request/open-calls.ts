interface OpenCall {
  readonly id: string;
  readonly name: string;
}

/** The calls of a conversation that have no result yet, for APIs in which calls and results may lack ids. */
export class OpenCalls {
  readonly #byId = new Map<string, OpenCall>();
  readonly #byName = new Map<string, { readonly calls: OpenCall[]; next: number }>();

  add(call: OpenCall): void {
    this.#byId.set(call.id, call);
    const named = this.#byName.get(call.name);
    if (named) named.calls.push(call);
    else this.#byName.set(call.name, { calls: [call], next: 0 });
  }

  /** Removes the call with this id; else the first one of this name; for a result with neither, the first one. */
  take(id: string | null | undefined, name: string | null | undefined): OpenCall | undefined {
    const first = (): OpenCall | undefined => this.#byId.values().next().value;
    const call = this.#byId.get(id ?? "") ?? (name ? this.#firstOf(name) : id ? undefined : first());
    if (call) this.#byId.delete(call.id);
    return call;
  }

  #firstOf(name: string): OpenCall | undefined {
    const named = this.#byName.get(name);
    if (named === undefined) return undefined;
    for (; named.next < named.calls.length; named.next++) {
      const call = named.calls[named.next];
      if (call && this.#byId.get(call.id) === call) return call;
    }
    return undefined;
  }
}
