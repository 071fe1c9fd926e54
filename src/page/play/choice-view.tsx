import type { VNode } from "preact";
import type { FinishReason } from "../../wire/core/events.ts";
import { useChanges } from "../parts/changing.ts";
import { indentedJson } from "../parts/json-text.ts";
import type { Answer, Call, Choice } from "./answer.ts";
import { AnswerText } from "./answer-text.tsx";
import { LongText } from "./long-text.tsx";

interface Properties {
  readonly choice: Choice;
  /** Of the whole answer. */
  readonly state: Answer["state"];
  /** The request asked for JSON. */
  readonly json: boolean;
  /** From 1, among several. */
  readonly number?: number;
  /** The conversation continues from this choice. */
  readonly chosen?: boolean;
  readonly onChoose?: () => void;
}

export const emptyAnswer = "The answer is empty.";

/** One choice of an answer: its reasoning folded, its text, its calls. */
export function ChoiceView({ choice, state, json, number, chosen, onChoose }: Properties): VNode {
  useChanges(choice);
  const { reasoning, text, refusal, calls, finish } = choice;
  const thinks = state === "running" && text.empty && calls.length === 0;
  return (
    <div class="choice" {...(number !== undefined && { role: "group", "aria-label": `Choice ${number}` })}>
      {number !== undefined && (
        <button type="button" class="quiet" aria-pressed={chosen} onClick={onChoose}>
          {chosen ? `Choice ${number}: the conversation continues here` : `Choice ${number}: continue from here`}
        </button>
      )}
      {!reasoning.empty && (
        <details class="reasoning">
          <summary>{thinks ? "Thinking…" : "Reasoning"}</summary>
          <AnswerText log={reasoning} open={thinks} />
        </details>
      )}
      {!text.empty && <AnswerText log={text} open={state === "running"} json={json} class="said" />}
      {!refusal.empty && <LongText log={refusal} class="said refusal" />}
      {calls.map((call) => (
        <CallView key={call.id} call={call} />
      ))}
      {state === "done" && text.empty && refusal.empty && calls.length === 0 && <p class="finish">{emptyAnswer}</p>}
      {finish !== undefined && finish !== "stop" && <p class="finish">{endings[finish]}</p>}
    </div>
  );
}

/** How a choice ended, where that is worth a word. */
const endings: Readonly<Record<Exclude<FinishReason, "stop">, string>> = {
  length: "Cut off: the limit of tokens is reached.",
  "tool-calls": "Ended to call a tool.",
  "function-call": "Ended to call a function.",
  "content-filter": "Ended by a content filter.",
};

function CallView({ call: { name, arguments: text, ended } }: { readonly call: Call }): VNode {
  return (
    <div class="call">
      <h3>
        <code>{name}</code>
      </h3>
      {ended ? <pre>{indentedJson(text.toString())}</pre> : <LongText log={text} class="code" />}
    </div>
  );
}
