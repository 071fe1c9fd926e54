import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { announcement } from "./changing.ts";

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, label = "Copy" }: { readonly text: () => string; readonly label?: string }): VNode {
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
    <button type="button" class="quiet" onClick={copy}>
      {said}
    </button>
  );
}
