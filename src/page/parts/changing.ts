import { useEffect, useState } from "preact/hooks";

/**
 * State that views show and that changes on its own. Its listeners are called once per frame, after all changes. `@preact/signals` would add
 * 2.8 kB to the compressed page (this file: 0.3 kB), and needs a new array or map for every change of one (version 2.11).
 */
export class Changing {
  readonly #listeners = new Set<() => void>();
  #changes = 0;

  /** How often it has changed. */
  get changes(): number {
    return this.#changes;
  }

  /** Returns what ends the subscription. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    this.#changes++;
    if (this.#listeners.size === 0) return;
    if (waiting.size === 0) requestAnimationFrame(notifyAll);
    for (const listener of this.#listeners) waiting.add(listener);
  }
}

/** One frame for everything that has changed: an answer of a thousand tokens a second costs as many updates as the screen shows. */
const waiting = new Set<() => void>();

function notifyAll(): void {
  const listeners = [...waiting];
  waiting.clear();
  for (const listener of listeners) listener();
}

/** Renders the component again whenever the source has changed. */
export function useChanges(source: Changing): void {
  const [, renderAgain] = useState({});
  const rendered = source.changes;
  useEffect(() => {
    // Effects run after the frame: a quick server's first words come between.
    if (source.changes !== rendered) renderAgain({});
    return source.subscribe(() => renderAgain({}));
  }, [source]);
}

/** Announces changes to screen readers, one sentence at a time. */
class Announcement extends Changing {
  text = "";

  say(text: string): void {
    // A repeated sentence is announced again, since the two differ by a space.
    this.text = this.text === text ? `${text}\u00A0` : text;
    this.changed();
  }
}

export const announcement: Announcement = new Announcement();
