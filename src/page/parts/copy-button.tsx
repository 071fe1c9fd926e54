import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { announcement } from "./changing.ts";

interface Properties {
  readonly text: () => string;
  readonly label?: string;
  /** False: it looks like the other buttons of its row. */
  readonly quiet?: boolean;
}

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, label = "Copy", quiet = true }: Properties): VNode {
  const [said, setSaid] = useState(label);
  const say = (word: string): void => {
    setSaid(word);
    announcement.say(word);
    setTimeout(() => setSaid(label), 1500);
  };
  const copy = (): void => {
    // Browsers give the clipboard to pages of this machine, and to those that came by HTTPS.
    const copied = navigator.clipboard?.writeText(text()) ?? Promise.reject(new Error("no clipboard"));
    copied.then(
      () => say("Copied"),
      () => say("Not copied"),
    );
  };
  return (
    <button type="button" class={quiet ? "quiet" : ""} onClick={copy}>
      {said}
    </button>
  );
}
