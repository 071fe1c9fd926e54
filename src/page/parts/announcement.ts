import { Changing } from "./changing.ts";

/** What a screen reader is told: one sentence at a time, where sighted people see it happen. */
class Announcement extends Changing {
  text = "";

  say(text: string): void {
    // The same sentence twice is told twice: the two differ by a space that nobody hears.
    this.text = this.text === text ? `${text}\u00A0` : text;
    this.changed();
  }
}

export const announcement: Announcement = new Announcement();
