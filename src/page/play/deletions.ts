import { announcement } from "../parts/changing.ts";

/** What was deleted, and how to restore it. */
interface Deletion {
  readonly text: string;
  readonly undo: () => Promise<void> | void;
}

/** What was deleted and can be restored until the page is closed. */
export class Deletions {
  /** The latest last. */
  all: readonly Deletion[] = [];
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  add(deletion: Deletion): void {
    this.#set([...this.all, deletion]);
    announcement.say(`${deletion.text} Undo is below the list of conversations.`);
  }

  /** Restores what was deleted last. */
  async undo(): Promise<void> {
    const last = this.all.at(-1);
    this.#set(this.all.slice(0, -1));
    await last?.undo();
    announcement.say("Restored.");
  }

  /** Removes what was deleted from memory. */
  forget(): void {
    this.#set([]);
  }

  #set(all: readonly Deletion[]): void {
    this.all = all;
    this.#changed();
  }
}
