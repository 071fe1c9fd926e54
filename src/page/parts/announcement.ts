import { Changing } from "./changing.ts";

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
