import { placeAfter, placesAfter } from "./turn.ts";
import type { Turn } from "./turn.ts";

/**
 * The turns of a conversation with all their versions. Turns with the same parent are versions of each other. Of the versions at each place,
 * one is shown: the one chosen last, else the newest. So exactly one path from the first turn is shown, and each hidden version keeps its own
 * continuation.
 */
export class TurnTree {
  readonly #turns = new Map<string, Turn>();
  /** Place → ids of the turns there, the oldest first. */
  readonly #versions = new Map<string, string[]>();
  /** Place → id of the turn that is shown there. */
  readonly #shown = new Map<string, string>();
  #path: readonly Turn[] | undefined;

  get(id: string): Turn | undefined {
    return this.#turns.get(id);
  }

  /** All turns of all versions, in the order in which they were added. */
  get all(): readonly Turn[] {
    return [...this.#turns.values()];
  }

  /** The turns that are shown, the first one first. The same array until the tree changes. */
  get path(): readonly Turn[] {
    if (this.#path) return this.#path;
    const path: Turn[] = [];
    for (let turn = this.#shownAt(""); turn; turn = this.#shownAt(placeAfter(turn))) path.push(turn);
    this.#path = path;
    return path;
  }

  /** The place after the last turn that is shown. */
  get end(): string {
    const last = this.path.at(-1);
    return last ? placeAfter(last) : "";
  }

  /** Place → id of the turn that was chosen there. */
  get shown(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#shown);
  }

  /** Returns the turns from the first one to this one, with the choices from which they continue. */
  pathTo(id: string): readonly Turn[] {
    const path: Turn[] = [];
    let turn = this.#turns.get(id);
    while (turn) {
      path.push(turn);
      const { before, choice } = this.#before(turn);
      turn = before?.kind === "answer" ? { ...before, chosen: choice } : before;
    }
    return path.reverse();
  }

  /** Returns the ids of all versions of a turn, the oldest first, including its own. */
  versionsOf({ parent }: Turn): readonly string[] {
    return this.#versions.get(parent) ?? [];
  }

  /** Adds a turn, or replaces the one with the same id, whose parent must be the same. Does not change which versions were chosen. */
  put(turn: Turn): void {
    this.#path = undefined;
    const isNew = !this.#turns.has(turn.id);
    this.#turns.set(turn.id, turn);
    if (!isNew) return;
    const versions = this.#versions.get(turn.parent) ?? [];
    const after = versions.findIndex((id) => isBefore(turn, this.#turns.get(id)));
    versions.splice(after === -1 ? versions.length : after, 0, turn.id);
    this.#versions.set(turn.parent, versions);
  }

  /**
   * Adds turns from a file or a store, in any order, and what was shown. Returns those that were not added because no turn before them is
   * there.
   */
  addAll(turns: readonly Turn[], shown: Readonly<Record<string, string>> = {}): readonly Turn[] {
    const waiting = new Map<string, Turn[]>();
    for (const turn of turns) {
      const here = waiting.get(turn.parent);
      if (here) here.push(turn);
      else waiting.set(turn.parent, [turn]);
    }
    const places = ["", ...this.all.flatMap(placesAfter)];
    for (let at = 0; at < places.length; at++) {
      const place = places[at] ?? "";
      for (const turn of waiting.get(place) ?? []) {
        this.put(turn);
        places.push(...placesAfter(turn));
      }
      waiting.delete(place);
    }
    for (const [place, id] of Object.entries(shown))
      if (this.#turns.get(id)?.parent === place) this.#shown.set(place, id);
    return [...waiting.values()].flat();
  }

  /** Marks the answers that were growing when they were stored as interrupted, since no tab receives them. `received`: the id of one that is. */
  markInterrupted(received?: string): void {
    for (const turn of this.#turns.values()) {
      if (turn.kind !== "answer" || turn.answer.state !== "running" || turn.id === received) continue;
      turn.answer.state = "interrupted";
      turn.answer.changed();
    }
  }

  /** Shows a turn: all turns before it are shown, too. */
  show(id: string): void {
    this.#path = undefined;
    let turn = this.#turns.get(id);
    while (turn) {
      this.#shown.set(turn.parent, turn.id);
      const { before, choice } = this.#before(turn);
      if (before?.kind === "answer") this.#turns.set(before.id, { ...before, chosen: choice });
      turn = before;
    }
  }

  /** Continues from another choice of an answer. */
  choose(id: string, chosen: number): void {
    const turn = this.#turns.get(id);
    if (turn?.kind === "answer") this.put({ ...turn, chosen });
  }

  /** Removes a turn and all that follow it. Returns them, the turn itself first. */
  remove(id: string): readonly Turn[] {
    this.#path = undefined;
    const first = this.#turns.get(id);
    const removed = first ? [first] : [];
    for (let at = 0; at < removed.length; at++) {
      const turn = removed[at];
      if (!turn) continue;
      this.#turns.delete(turn.id);
      for (const place of placesAfter(turn)) {
        for (const next of this.#versions.get(place) ?? []) {
          const found = this.#turns.get(next);
          if (found) removed.push(found);
        }
        this.#versions.delete(place);
        this.#shown.delete(place);
      }
    }
    if (first) {
      const versions = this.#versions.get(first.parent) ?? [];
      const at = versions.indexOf(id);
      versions.splice(at, 1);
      if (versions.length === 0) this.#versions.delete(first.parent);
      if (this.#shown.get(first.parent) === id) {
        // The previous version, as the pager counts them.
        const next = versions[Math.max(0, at - 1)];
        if (next === undefined) this.#shown.delete(first.parent);
        else this.#shown.set(first.parent, next);
      }
    }
    return removed;
  }

  #shownAt(place: string): Turn | undefined {
    const versions = this.#versions.get(place);
    return this.#turns.get(this.#shown.get(place) ?? versions?.at(-1) ?? "");
  }

  #before({ parent }: Turn): { readonly before: Turn | undefined; readonly choice: number } {
    const [id = "", choice = "0"] = parent.split("/");
    return { before: this.#turns.get(id), choice: Number(choice) };
  }
}

function isBefore(turn: Turn, other: Turn | undefined): boolean {
  if (!other) return false;
  return turn.created < other.created || (turn.created === other.created && turn.id < other.id);
}
