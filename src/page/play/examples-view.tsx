import type { VNode } from "preact";
import type { Conversation } from "./conversation.ts";
import { examples, fresh } from "./examples.ts";
import type { Example } from "./examples.ts";
import type { Settings } from "./settings.ts";

/** What a page without a conversation offers. */
export function Examples({
  settings,
  conversation,
}: {
  readonly settings: Settings;
  readonly conversation: Conversation;
}): VNode {
  const go = (example: Example): void => {
    settings.set({ ...fresh, ...example.settings });
    conversation.ask(example.question, []);
  };
  return (
    <div class="examples">
      <h2>Ask a model, and see what it says</h2>
      <p>Write below, or begin with one of these.</p>
      <ul>
        {examples.map((example) => (
          <li key={example.title}>
            <button type="button" onClick={() => go(example)}>
              <strong>{example.title}</strong>
              <span>{example.question}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
