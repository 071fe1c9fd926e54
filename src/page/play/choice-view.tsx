import type { VNode } from "preact";
import type { FinishReason } from "../../wire/core/events.ts";
import { useChanges } from "../parts/changing.ts";
import { indentedJson } from "../parts/json-text.ts";
import { objectIn } from "../../wire/core/json.ts";
import type { Answer, Call, Choice, HostedCall, Source } from "./answer.ts";
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
  const { reasoning, text, refusal, calls, hostedCalls, sources, finish } = choice;
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
      {hostedCalls.map((call) => (
        <HostedCallView key={call.id} call={call} isOpen={state === "running"} />
      ))}
      {!text.empty && <AnswerText log={text} open={state === "running"} json={json} class="said" />}
      {!refusal.empty && <LongText log={refusal} class="said refusal" />}
      {sources.size > 0 && <Sources sources={[...sources.values()]} />}
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

interface HostedCallProperties {
  readonly call: HostedCall;
  /** The answer still grows. */
  readonly isOpen: boolean;
}

/** A call that the server runs: what was asked, what came back, how long it took. */
function HostedCallView({ call, isOpen }: HostedCallProperties): VNode {
  const { name, arguments: given, status, output, ms } = call;
  const time = ms === undefined ? "" : ` · ${ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`}`;
  const outcome = { running: isOpen ? "runs…" : "has no result", completed: "succeeded", failed: "failed" }[status];
  return (
    <details class="call hosted">
      <summary>
        <code>{name}</code> {shortArguments(given)}{" "}
        <span class={status === "failed" ? "note wrong" : "note"}>
          {outcome}
          {time}
        </span>
      </summary>
      <pre aria-label={`Arguments of ${name}`}>{indentedJson(given)}</pre>
      {output !== "" && (
        <pre aria-label={`Result of ${name}`} dir="auto">
          {output.length > maxShown ? `${output.slice(0, maxShown)}…` : output}
        </pre>
      )}
    </details>
  );
}

/** The rest of a result is in Inspect. In characters. */
const maxShown = 20_000;

/** The only argument of most calls: the query, the URL. */
function shortArguments(text: string): string {
  const given = objectIn(text) ?? {};
  const [value] = Object.values(given);
  return typeof value === "string" ? value.slice(0, 100) : "";
}

function Sources({ sources }: { readonly sources: readonly Source[] }): VNode {
  return (
    <section class="sources" aria-label="Sources">
      <h3>Sources</h3>
      <ol>
        {sources.map(({ url, title }) => (
          <li key={url}>
            <a href={url} target="_blank" rel="noopener noreferrer nofollow">
              {title}
            </a>{" "}
            <span class="note">{new URL(url).host}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

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
