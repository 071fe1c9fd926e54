import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { GeneratedChoice, GeneratedHostedCall, Generation } from "../../wire/core/accumulate.ts";
import { isFailed } from "../../wire/core/hosted-result.ts";
import type { HostedTool } from "../../wire/core/hosted-tool.ts";
import type { Message, Tool } from "../../wire/core/message.ts";
import type { TurnStateCounts } from "../../wire/core/generation-observer.ts";
import type { InspectedRequest } from "../../judge/inspect/inspected-request.ts";
import { readAside } from "../captured/judge-aside.ts";
import { JsonTree } from "./json-tree-view.tsx";
import { jsonIn, jsonText } from "../parts/json-text.ts";
import { isShort } from "./json-tree.ts";
import { CallView, FoldedText, MessageCard, Parts, ReasoningView, ResultView } from "./message-view.tsx";
import {
  answerOf,
  hostedTimes,
  inputText,
  inputTextsOf,
  jsonOfBody,
  parametersOf,
  parsedRequestOf,
  readableMessages,
  refusedPlace,
  wholeText,
} from "./readable-request.ts";
import type { InputText, ParsedRequest, ReadableMessage } from "./readable-request.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** Of a longer conversation, only this number of messages is shown at first. */
const maxMessages = 40;

/** Paths whose requests are texts, not messages: embeddings and rankings, Ollama's included. */
const textApis = /\/(?:embed|rerank)/;

/** The request and its answer as people read them. */
export default function OverviewView({ request }: { readonly request: InspectedRequest }): VNode {
  const root = useRef<HTMLDivElement>(null);
  const { body, understood } = request.request;
  // Of a program that failed; only who may see the requests of all clients gets it.
  const { stack } = request as { readonly stack?: string };
  const json = useMemo(() => jsonOfBody(body), [body?.text]);
  const { parsed, isReading } = useParsed(request, json);
  const messages = parsed?.prompt.kind === "chat" ? parsed.prompt.messages : [];
  const prompts = parsed?.prompt.kind === "text" ? parsed.prompt.prompts : [];
  const inputs = useMemo(() => (textApis.test(request.path) ? inputTextsOf(json) : []), [request.path, json]);
  const parameters = json === undefined && parsed ? parametersOf(parsed) : parametersOf(json);
  const go = (part: string): void => {
    const element = root.current?.querySelector(`[data-part="${part}"]`);
    if (!(element instanceof HTMLElement)) return;
    element.scrollIntoView({ block: "start" });
    element.focus({ preventScroll: true });
  };
  if (body?.left_out !== undefined && !parsed) {
    return (
      <div class="stack">
        <p class="note">
          The request is too long to be kept completely, so only its beginning is shown; the option inspectSize sets how
          much is kept.
        </p>
        <FoldedText text={body.text} label="The beginning of the body" />
        <AnswerView request={request} />
      </div>
    );
  }
  return (
    <div ref={root} class="stack readable">
      {stack !== undefined && (
        <details>
          <summary>Where the exception was thrown</summary>
          <pre class="captured" tabIndex={0} role="region" aria-label="The stack of the exception">
            {stack}
          </pre>
        </details>
      )}
      <p class="row">
        {messages.length > 0 && (
          <button type="button" class="quiet" onClick={() => go("last")}>
            To the last message
          </button>
        )}
        <button type="button" class="quiet" onClick={() => go("answer")}>
          To the answer
        </button>
      </p>
      {parsed && understood === undefined && (
        <p class="note">
          The server did not read this request as one for an answer. This page has read it with the rules of the API.
        </p>
      )}
      {request.turn_states && <TurnStates counts={request.turn_states} />}
      <ToolList tools={parsed?.tools ?? []} hosted={parsed?.hostedTools ?? []} />
      <Parameters parameters={parameters} />
      {messages.length > 0 && <Messages messages={messages} />}
      {prompts.map((prompt, at) => (
        <MessageCard key={at} role="prompt" note={prompts.length > 1 ? `prompt ${at}` : ""}>
          {typeof prompt === "string" ? (
            <FoldedText text={prompt} />
          ) : (
            <JsonTree label={`Token ids of prompt ${at}`} value={prompt} isSmall />
          )}
        </MessageCard>
      ))}
      {isReading && <p class="waiting">Reading the request…</p>}
      {!isReading && inputs.length > 0 && <Inputs inputs={inputs} />}
      {!isReading && !parsed && inputs.length === 0 && <Unread request={request} json={json} />}
      <AnswerView request={request} />
    </div>
  );
}

/** What became of the values that servers demand back; where, is told with each request to an upstream. */
function TurnStates({ counts }: { readonly counts: TurnStateCounts }): VNode {
  const said = fates.flatMap(([fate, words]) => (counts[fate] > 0 ? [`${counts[fate]} ${words}`] : []));
  return <p class="note">State of earlier turns: {said.join(", ")}.</p>;
}

const fates: readonly (readonly [keyof TurnStateCounts, string])[] = [
  ["kept", "returned by the client"],
  ["restored", "restored from this server's memory"],
  ["missing", "not found"],
  ["foreign", "left out because another source made it"],
  ["standIns", "replaced by a stand-in"],
  ["dropped", "left out because the source refused it"],
];

/** The request as the server parsed it; if it did not, as the reader of the API reads it, in a worker. */
function useParsed(
  request: InspectedRequest,
  json: unknown,
): { readonly parsed: ParsedRequest | undefined; readonly isReading: boolean } {
  const { id, path, outcome } = request;
  const { headers, body, understood } = request.request;
  const known = useMemo(() => parsedRequestOf(request), [understood?.text]);
  const [read, setRead] = useState<{ readonly id: string; readonly parsed: ParsedRequest | undefined }>();
  const isNeeded = !known && outcome !== "open" && json !== undefined && understood === undefined;
  useEffect(() => {
    if (!isNeeded) return;
    let isLeft = false;
    readAside({ id, path, headers, body: body?.text ?? "" }).then(
      (parsed) => !isLeft && setRead({ id, parsed }),
      () => !isLeft && setRead({ id, parsed: undefined }),
    );
    return () => {
      isLeft = true;
    };
  }, [id, isNeeded]);
  return { parsed: known ?? (read?.id === id ? read.parsed : undefined), isReading: isNeeded && read?.id !== id };
}

function Messages({ messages }: { readonly messages: readonly Message[] }): VNode {
  const readable = useMemo(() => readableMessages(messages), [messages]);
  const [isAll, setAll] = useState(false);
  const system = readable.filter(({ message }, at) => isSystem(message) && at === leadingSystem(readable, at));
  const others = readable.slice(system.length);
  const hidden = isAll ? 0 : Math.max(0, others.length - maxMessages);
  return (
    <section class="stack" aria-label="Messages">
      <h3>
        Messages <span class="count">{messages.length}</span>
      </h3>
      {system.map((one) => (
        <MessageView key={one.path} readable={one} isLast={false} />
      ))}
      {hidden > 0 && (
        <button type="button" onClick={() => setAll(true)}>
          Show {countInWords(hidden, "earlier message")}
        </button>
      )}
      {others.slice(hidden).map((one, at, shown) => (
        <MessageView key={one.path} readable={one} isLast={at === shown.length - 1} />
      ))}
    </section>
  );
}

function isSystem({ role }: Message): boolean {
  return role === "system" || role === "developer";
}

/** `at` if all messages up to it are the system's. */
function leadingSystem(readable: readonly ReadableMessage[], at: number): number {
  return readable.slice(0, at + 1).every(({ message }) => isSystem(message)) ? at : -1;
}

function MessageView({ readable, isLast }: { readonly readable: ReadableMessage; readonly isLast: boolean }): VNode {
  const { message, path, results } = readable;
  const name = "name" in message && message.name !== undefined ? `${message.name} · ` : "";
  return (
    <div {...(isLast && { "data-part": "last", tabIndex: -1 })}>
      <MessageCard role={message.role} note={`${name}${path}`} copied={() => textOfMessage(message)}>
        {message.role === "tool" ? (
          <ResultView result={message} />
        ) : (
          <Parts content={message.content} results={results} />
        )}
      </MessageCard>
    </div>
  );
}

/** What is copied of a message: its texts, and calls as JSON. */
function textOfMessage({ content }: Message): string {
  if (content === null || typeof content === "string") return content ?? "";
  return content.map((part) => ("text" in part ? (part.text ?? "") : jsonText(part))).join("\n\n");
}

interface ToolListProperties {
  readonly tools: readonly Tool[];
  readonly hosted: readonly HostedTool[];
}

function ToolList({ tools, hosted }: ToolListProperties): VNode | null {
  if (tools.length + hosted.length === 0) return null;
  return (
    <details class="tool-list">
      <summary>
        Tools <span class="count">{tools.length + hosted.length}</span>{" "}
        <span class="note">{[...tools.map(({ name }) => name), ...hosted.map(({ type }) => type)].join(", ")}</span>
      </summary>
      <ul class="stack">
        {tools.map((tool) => (
          <li key={tool.name}>
            <ToolView tool={tool} />
          </li>
        ))}
        {hosted.map(({ type, declaration }, at) => (
          <li key={`${type} ${at}`}>
            <details class="one-tool">
              <summary>
                <code>{type}</code> <span class="note">A tool of the API's vendor</span>
              </summary>
              <JsonTree label={`Declaration of ${type}`} value={declaration} isSmall />
            </details>
          </li>
        ))}
      </ul>
    </details>
  );
}

function ToolView({ tool }: { readonly tool: Tool }): VNode {
  const { name, description = "", parameters, strict, kind, inputGrammar, deferred } = tool;
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="one-tool" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <code>{name}</code> {strict === true && <span class="chip">strict</span>}{" "}
        {kind === "custom" && <span class="chip">custom</span>}{" "}
        {deferred === true && <span class="chip">deferred</span>}{" "}
        <span class="note">{description.split("\n", 1)[0]?.slice(0, 160)}</span>
      </summary>
      {isOpen && (
        <div class="stack">
          {description !== "" && <FoldedText text={description} label={`Description of ${name}`} />}
          {parameters === undefined ? (
            <p class="note">{kind === "custom" ? "Its input is text." : "It has no parameters."}</p>
          ) : (
            <JsonTree label={`Parameters of ${name}`} value={parameters} isSmall />
          )}
          {inputGrammar && <FoldedText text={inputGrammar.definition} label={`Grammar of ${name}`} />}
        </div>
      )}
    </details>
  );
}

function Parameters({ parameters }: { readonly parameters: readonly (readonly [string, unknown])[] }): VNode | null {
  if (parameters.length === 0) return null;
  return (
    <details class="parameters" open={parameters.length <= 4}>
      <summary>
        Parameters <span class="count">{parameters.length}</span>{" "}
        <span class="note">{parameters.map(([name]) => name).join(", ")}</span>
      </summary>
      <table>
        <thead class="unseen">
          <tr>
            <th scope="col">Parameter</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {parameters.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>
                {typeof value === "object" && value !== null && !isShort(value, 80) ? (
                  <JsonTree label={name} value={value} isSmall />
                ) : (
                  <FoldedText text={typeof value === "string" ? value : jsonText(value, 0)} />
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** A request for embeddings may have thousands of texts. */
const maxInputs = 100;

function Inputs({ inputs }: { readonly inputs: readonly InputText[] }): VNode {
  return (
    <section class="stack" aria-label="Texts">
      <h3>
        Texts <span class="count">{inputs.length}</span>
      </h3>
      {inputs.slice(0, maxInputs).map((input) => (
        <MessageCard key={input.path} role="input" note={input.path} copied={() => inputText(input)}>
          <FoldedText text={inputText(input)} label={input.path} />
        </MessageCard>
      ))}
      {inputs.length > maxInputs && (
        <p class="note">{countInWords(inputs.length - maxInputs, "further text")}: see JSON.</p>
      )}
    </section>
  );
}

/** A request that no reader understands: its JSON, opened where the server refused it. */
function Unread({ request, json }: { readonly request: InspectedRequest; readonly json: unknown }): VNode {
  const { body } = request.request;
  const place = useMemo(() => refusedPlace(jsonIn(wholeText(request.response.body) ?? ""), json), [request]);
  if (json !== undefined) {
    return (
      <section class="stack">
        <h3>The body{place !== "" && `, which was refused for ${place}`}</h3>
        <JsonTree label="The body" value={json} place={place} />
      </section>
    );
  }
  if (!body) return <p class="note">The request has no body, or its body was compressed and is not kept.</p>;
  return (
    <section class="stack">
      <h3>The body, which is not JSON</h3>
      <FoldedText text={body.text} label="The body" />
    </section>
  );
}

/** The answer, assembled from the engine's events; without events, as it was sent. */
function AnswerView({ request }: { readonly request: InspectedRequest }): VNode {
  const answer = useMemo(() => answerOf(request), [request]);
  return (
    <section class="stack" data-part="answer" tabIndex={-1} aria-label="Answer">
      <h3>Answer</h3>
      {answer && answer.choices.length > 0 ? (
        <Assembled answer={answer} request={request} />
      ) : (
        <SentAnswer request={request} />
      )}
    </section>
  );
}

function Assembled({ answer, request }: { readonly answer: Generation; readonly request: InspectedRequest }): VNode {
  const { choices, usage, end } = answer;
  const times = useMemo(() => hostedTimes(request), [request]);
  const failure = "failure" in end && request.outcome !== "open" ? end.failure : undefined;
  return (
    <>
      {choices.map((choice) => (
        <MessageCard
          key={choice.choice}
          role="assistant"
          note={`${choices.length > 1 ? `choice ${choice.choice} · ` : ""}${finishOf(choice, request)}`}
          copied={() => choice.text ?? ""}
        >
          <Choice choice={choice} times={times} />
        </MessageCard>
      ))}
      {failure && <p class="banner wrong">{failure.message}</p>}
      <table class="facts-table">
        <tbody>
          <Fact name="Form" value={request.stream === true ? "streamed" : "whole"} />
          <Fact name="Prompt tokens" value={usage?.promptTokens} />
          {Object.entries(usage?.promptDetails ?? {}).map(([name, value]) => (
            <Fact key={name} name={`of them ${name}`} value={value} />
          ))}
          <Fact name="Completion tokens" value={usage?.completionTokens} />
          {Object.entries(usage?.completionDetails ?? {}).map(([name, value]) => (
            <Fact key={name} name={`of them ${name}`} value={value} />
          ))}
        </tbody>
      </table>
      {!usage && request.outcome !== "open" && <p class="note">The source of the answer reported no usage.</p>}
    </>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string | number | undefined }): VNode | null {
  if (value === undefined) return null;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{value.toLocaleString("en")}</td>
    </tr>
  );
}

function finishOf({ finish }: GeneratedChoice, { outcome }: InspectedRequest): string {
  if (finish) return `finish reason ${finish.reason}`;
  return outcome === "open" ? "not finished yet" : "no finish reason: the answer broke off";
}

interface ChoiceProperties {
  readonly choice: GeneratedChoice;
  /** Of hosted calls, in milliseconds. */
  readonly times: ReadonlyMap<string, number>;
}

function Choice({ choice: { parts }, times }: ChoiceProperties): VNode {
  const called = new Set(parts.flatMap((part) => (part.type === "hosted-call" ? [part.id] : [])));
  if (parts.length === 0) return <p class="note">An empty answer.</p>;
  return (
    <>
      {parts.map((part, at) => {
        switch (part.type) {
          case "text":
            return <FoldedText key={at} text={part.text} label="The answer" />;
          case "refusal":
            return (
              <p key={at} class="plain refusal">
                {part.refusal}
              </p>
            );
          case "reasoning":
            return <ReasoningView key={at} text={part.text} summary={part.summary} state={part.state} />;
          case "tool-call":
            return <CallView key={at} call={part} />;
          case "hosted-call":
            return <HostedCallView key={at} call={part} ms={times.get(part.id)} />;
          case "hosted-approval":
            return (
              <CallView
                key={at}
                call={{ id: part.id, name: part.name, arguments: part.arguments }}
                note="waits for the client's approval"
              />
            );
          case "hosted-result":
            return called.has(part.id) ? null : (
              <JsonTree key={at} label={`The result of ${part.name}`} value={part.result} isSmall />
            );
          case "hosted-functions":
            return <JsonTree key={at} label={`The functions of ${part.tool}`} value={part.functions} isSmall />;
          case "item":
            return <JsonTree key={at} label="An item of the API" value={part.value} isSmall />;
        }
      })}
    </>
  );
}

interface HostedCallProperties {
  readonly call: GeneratedHostedCall;
  readonly ms: number | undefined;
}

/** A call that ran on the server: what was asked, what came back, and how long it took. */
function HostedCallView({ call, ms }: HostedCallProperties): VNode {
  const { id, kind, tool, name, arguments: given } = call;
  const result = call.result?.result;
  const failed = result?.kind === "failure" ? result : undefined;
  const outcome = result === undefined ? "has no result" : isFailed(result) ? "failed" : "succeeded";
  const time = ms === undefined ? "" : ` after ${Math.round(ms).toLocaleString("en")} ms`;
  return (
    <CallView
      call={{ id, name: kind === "mcp" ? `${tool}: ${name}` : name, arguments: given }}
      note={`run here · ${outcome}${time}`}
    >
      {failed ? (
        <p class="banner wrong">
          <code>{failed.code}</code> {failed.message}
        </p>
      ) : (
        result && <JsonTree label={`The result of ${name}`} value={result} isSmall />
      )}
    </CallView>
  );
}

/** The body that was sent: of errors, embeddings, lists. */
function SentAnswer({ request }: { readonly request: InspectedRequest }): VNode {
  const { response, outcome } = request;
  const text = useMemo(() => response.body.chunks.map((chunk) => chunk.text).join(""), [response.body]);
  const json = useMemo(() => jsonIn(text), [text]);
  if (text === "") {
    return <p class="note">{outcome === "open" ? "Nothing has been sent yet." : "Nothing was sent."}</p>;
  }
  return (
    <>
      {request.events.left_out && (
        <p class="note">The answer is too long to be kept completely: this is what was kept of it.</p>
      )}
      {json === undefined ? (
        <FoldedText text={text} label="The answer" />
      ) : (
        <JsonTree label="The answer" value={json} isSmall />
      )}
    </>
  );
}
