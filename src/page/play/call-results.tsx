import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Conversation } from "./conversation.ts";
import type { PlayTool } from "./tool.ts";
import type { AnswerTurn } from "./turn.ts";

interface Properties {
  readonly turn: AnswerTurn;
  readonly conversation: Conversation;
  readonly tools: readonly PlayTool[];
}

/** Where a person answers the calls of a model. */
export function CallResults({ turn: { answer, chosen }, conversation, tools }: Properties): VNode {
  const calls = answer.choices[chosen]?.calls ?? [];
  const [texts, setTexts] = useState(calls.map(({ name }) => tools.find((tool) => tool.name === name)?.canned ?? ""));
  return (
    <form
      class="stack call-results"
      onSubmit={(event) => {
        event.preventDefault();
        conversation.giveResults(calls.map(({ id, name }, at) => ({ callId: id, name, text: texts[at] ?? "" })));
      }}
    >
      {calls.map(({ id, name }, at) => (
        <label key={id} class="field">
          <span>
            What <code>{name}</code> gives back
          </span>
          <textarea
            rows={2}
            class="code"
            value={texts[at]}
            onInput={({ currentTarget: { value } }) =>
              setTexts(texts.map((text, other) => (other === at ? value : text)))
            }
          />
        </label>
      ))}
      <div class="row end">
        <button type="submit" class="main">
          {calls.length === 1 ? "Give the result" : "Give the results"}
        </button>
      </div>
    </form>
  );
}
