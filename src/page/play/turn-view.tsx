import type { VNode } from "preact";
import { AnswerView } from "./answer-view.tsx";
import type { Conversation } from "./conversation.ts";
import { QuestionView } from "./question-view.tsx";
import type { Settings } from "./settings.ts";
import type { Turn } from "./turn.ts";

interface Properties {
  readonly turn: Turn;
  readonly conversation: Conversation;
  readonly settings: Settings;
  readonly keyNeeded: boolean;
  /** Its calls wait for their results. */
  readonly waits: boolean;
}

export function TurnView({ turn, conversation, settings, keyNeeded, waits }: Properties): VNode {
  if (turn.kind === "question") return <QuestionView turn={turn} conversation={conversation} />;
  if (turn.kind === "answer")
    return (
      <AnswerView turn={turn} conversation={conversation} settings={settings} keyNeeded={keyNeeded} waits={waits} />
    );
  return (
    <article class="turn results">
      {turn.results.map(({ callId, name, text }) => (
        <div key={callId}>
          <h2>{name} gave back</h2>
          <pre>{text}</pre>
        </div>
      ))}
    </article>
  );
}
