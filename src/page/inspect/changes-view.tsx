import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { describeCacheMiss } from "../../wire/core/cache-miss.ts";
import type { Message, Tool } from "../../wire/core/message.ts";
import type { InspectedRequest, InspectedRequestList, RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { askAdmin } from "../api/call-api.ts";
import { MessageCard, Parts, ResultView } from "./message-view.tsx";
import { Miss } from "./prompt-view.tsx";
import { jsonOfBody, parametersOf, parsedRequestOf } from "./readable-request.ts";
import type { ParsedRequest } from "./readable-request.ts";
import {
  areReordered,
  comparePrompts,
  diffMessages,
  diffParameters,
  diffTexts,
  diffTools,
  messagesOf,
  messageText,
  sharedMessages,
  toolText,
} from "./request-diff.ts";
import type { Change, ParameterChange, TextChange } from "./request-diff.ts";
import { timeInWords } from "./words.ts";
import { jsonText } from "../parts/json-text.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** Earlier requests that one can be compared with. */
const maxOffered = 100;
/** Earlier requests that are loaded to find the previous turn. */
const maxTried = 8;

/** The earlier request that a request is compared with. */
interface Earlier {
  readonly request: InspectedRequest;
  readonly parsed: ParsedRequest;
}

/** What changed since the previous turn of the conversation. */
export default function ChangesView({ request }: { readonly request: InspectedRequest }): VNode {
  const { id } = request;
  const { text = "" } = request.request.understood ?? {};
  const parsed = useMemo(() => parsedRequestOf(request), [id, text]);
  const [offered, setOffered] = useState<readonly RequestSummary[]>();
  const [chosen, setChosen] = useState("");
  const [earlier, setEarlier] = useState<Earlier | null>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!parsed) return;
    const leaving = new AbortController();
    const find = async (): Promise<void> => {
      const summaries = await earlierRequests(request, leaving.signal);
      setOffered(summaries);
      const previous = await previousTurn(request, parsed, summaries, leaving.signal);
      setEarlier(previous ?? null);
      setChosen(previous?.request.id ?? "");
    };
    setChosen("");
    setEarlier(undefined);
    setProblem("");
    find().catch((error: unknown) => !leaving.signal.aborted && setProblem(messageOf(error)));
    return () => leaving.abort();
  }, [id, parsed !== undefined]);
  useEffect(() => {
    if (chosen === "" || earlier?.request.id === chosen) return;
    const leaving = new AbortController();
    loadRequest(chosen, leaving.signal).then(
      (found) => {
        setEarlier(found ?? null);
        setProblem(found ? "" : "This request is too long to be kept completely, so it cannot be compared.");
      },
      (error: unknown) => !leaving.signal.aborted && setProblem(messageOf(error)),
    );
    return () => leaving.abort();
  }, [chosen]);

  if (!parsed)
    return (
      <p class="note">
        Only requests for an answer that were read completely are compared. This one was refused before, asks for
        something else, or is too long to be kept.
      </p>
    );
  return (
    <div class="stack readable">
      {request.cache_miss && <Miss miss={request.cache_miss} />}
      {offered && offered.length > 0 && (
        <label class="field">
          <span>Compared with</span>
          <select value={chosen} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
            {chosen === "" && <option value="">Choose an earlier request</option>}
            {offered.map((summary) => (
              <option key={summary.id} value={summary.id}>
                {nameOf(summary, request)}
              </option>
            ))}
          </select>
        </label>
      )}
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      {offered?.length === 0 && <p class="note">No earlier request of this model is kept.</p>}
      {offered && offered.length > 0 && earlier === null && problem === "" && chosen === "" && (
        <p class="note">None of the latest requests of this model has a message in common with this one.</p>
      )}
      {problem === "" && earlier === undefined && offered?.length !== 0 && (
        <p class="waiting">Looking for the previous turn…</p>
      )}
      {earlier && earlier.request.id === chosen && (
        <Comparison key={chosen} earlier={earlier} request={request} parsed={parsed} />
      )}
    </div>
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The earlier requests of the same model that were read: those of the conversation first, then those of the session, each the latest first. */
async function earlierRequests(request: InspectedRequest, signal: AbortSignal): Promise<readonly RequestSummary[]> {
  const { model = "", number } = request;
  const response = await askAdmin(`requests?model=${encodeURIComponent(model)}`, { signal });
  const { requests } = (await response.json()) as InspectedRequestList;
  const earlier = requests.filter((other) => other.number < number && other.turn !== undefined).toReversed();
  return earlier.toSorted((one, other) => distanceOf(one, request) - distanceOf(other, request)).slice(0, maxOffered);
}

/** 0: of the same conversation, 1: of the same session of the client, 2: of another one. */
function distanceOf(one: RequestSummary, request: RequestSummary): number {
  if (one.conversation === request.conversation) return 0;
  return one.thread === request.thread ? 1 : 2;
}

/**
 * The latest earlier request that has the most messages in common. Clients also send other requests in a session, such as one for a
 * title, and a request whose system prompt has changed begins a conversation of its own.
 */
async function previousTurn(
  request: InspectedRequest,
  parsed: ParsedRequest,
  offered: readonly RequestSummary[],
  signal: AbortSignal,
): Promise<Earlier | undefined> {
  let best: { readonly earlier: Earlier; readonly shared: number } | undefined;
  for (const summary of offered.slice(0, maxTried)) {
    if (best && distanceOf(summary, request) > 0) break;
    const earlier = await loadRequest(summary.id, signal);
    if (!earlier) continue;
    const shared = sharedMessages(earlier.parsed, parsed);
    if (shared > (best?.shared ?? 0)) best = { earlier, shared };
    // All of it is here: no other request is nearer.
    if (shared > 0 && shared === messagesOf(earlier.parsed).length) break;
  }
  return best?.earlier;
}

/** undefined: it was not kept completely. */
async function loadRequest(id: string, signal: AbortSignal): Promise<Earlier | undefined> {
  const response = await askAdmin(`requests/${id}`, { signal });
  const request = (await response.json()) as InspectedRequest;
  const parsed = parsedRequestOf(request);
  return parsed && { request, parsed };
}

function nameOf(summary: RequestSummary, request: InspectedRequest): string {
  const { turn, at, snippet = "" } = summary;
  const place = [`turn ${turn}`, "another conversation of the session", "another session"][
    distanceOf(summary, request)
  ];
  const time = new Date(at).toLocaleTimeString("en-GB");
  return `${place} · ${timeInWords(request.at - at)} earlier, ${time} · ${snippet.slice(0, 60)}`;
}

interface ComparisonProperties {
  readonly earlier: Earlier;
  readonly request: InspectedRequest;
  readonly parsed: ParsedRequest;
}

function Comparison({ earlier, request, parsed }: ComparisonProperties): VNode {
  const changes = useMemo(() => {
    const [known, now] = [earlier.request, request].map(({ request: { body } }) => parametersOf(jsonOfBody(body)));
    return {
      messages: diffMessages(messagesOf(earlier.parsed), messagesOf(parsed)),
      tools: diffTools(earlier.parsed.tools ?? [], parsed.tools ?? []),
      parameters: diffParameters(known ?? [], now ?? []),
    };
  }, [earlier, request.id]);
  const { messages, tools, parameters } = changes;
  const changedTools = tools.filter(({ kind }) => kind !== "same");
  const order = areReordered(tools);
  return (
    <>
      <CacheSentence earlier={earlier} request={request} parsed={parsed} />
      <p class="row" aria-label="Summary of the changes">
        {summaryOf(messages, "message").map((fact) => (
          <span key={fact} class="chip">
            {fact}
          </span>
        ))}
        {summaryOf(changedTools, "tool").map((fact) => (
          <span key={fact} class="chip">
            {fact}
          </span>
        ))}
        {order && <span class="chip">tools in another order</span>}
        {parameters.length > 0 && <span class="chip">{countInWords(parameters.length, "parameter")} changed</span>}
        {messages.every(({ kind }) => kind === "same") && changedTools.length + parameters.length === 0 && (
          <span class="chip">no changes</span>
        )}
      </p>
      {parameters.length > 0 && <ParameterChanges changes={parameters} />}
      {changedTools.length > 0 && (
        <section class="stack" aria-label="Changes of tools">
          <h3>Tools</h3>
          {changedTools.map((change, at) => (
            <ToolChange key={at} change={change} />
          ))}
        </section>
      )}
      <MessageChanges changes={messages} />
    </>
  );
}

/** Whether a cache can serve the earlier prompt again, and where not, why. */
function CacheSentence({ earlier, request, parsed }: ComparisonProperties): VNode {
  const comparison = useMemo(() => comparePrompts(earlier.parsed, parsed), [earlier, request.id]);
  const { continues, broken, sharedMessages: shared } = comparison;
  const { cached_tokens: cached, prompt_tokens: prompt } = request;
  return (
    <section class="banner stack" aria-label="What a prompt cache can serve">
      {continues ? (
        <p>The earlier prompt is the beginning of this one: a prompt cache can serve all of it.</p>
      ) : (
        <p>
          {broken ? describeCacheMiss(broken) : "The prompts differ before the end of the earlier one."}{" "}
          {shared === 0
            ? "No message before the first difference is the same."
            : `The first ${countInWords(shared, "message")} ${shared === 1 ? "is" : "are"} the same.`}
        </p>
      )}
      {broken && (
        <p class="note">
          The prompts are the same for about {countInWords(broken.at, "token")}; about{" "}
          {countInWords(broken.missedTokens, "token")} of the earlier prompt come after that (estimates).
        </p>
      )}
      {cached !== undefined && prompt !== undefined && (
        <p class="note">
          {cached.toLocaleString("en")} of {countInWords(prompt, "prompt token")} came from the cache.
        </p>
      )}
    </section>
  );
}

function summaryOf(changes: readonly Change<unknown>[], word: string): string[] {
  return (["added", "changed", "removed"] as const).flatMap((kind) => {
    const count = changes.filter((change) => change.kind === kind).length;
    return count === 0 ? [] : [`${countInWords(count, word)} ${kind}`];
  });
}

function ParameterChanges({ changes }: { readonly changes: readonly ParameterChange[] }): VNode {
  return (
    <section class="stack" aria-label="Changes of parameters">
      <h3>Parameters</h3>
      <table>
        <tbody>
          {changes.map((change) => (
            <tr key={change.name}>
              <th scope="row">
                <code>{change.name}</code>
              </th>
              <td>
                <TextChanges
                  changes={[
                    ...("before" in change ? [{ kind: "removed" as const, text: jsonText(change.before, 0) }] : []),
                    ...("after" in change ? [{ kind: "added" as const, text: jsonText(change.after, 0) }] : []),
                  ]}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ToolChange({ change }: { readonly change: Change<Tool> }): VNode {
  const { name } = "after" in change ? change.after : change.before;
  return (
    <details class={`one-tool change ${change.kind}`}>
      <summary>
        <Kind kind={change.kind} /> <code>{name}</code>
      </summary>
      <TextChanges changes={textChangesOf(change, toolText)} />
    </details>
  );
}

/** The versions of an entry as changes of its text. */
function textChangesOf<T>(change: Change<T>, textOf: (entry: T) => string): TextChange[] {
  if (change.kind === "added") return [{ kind: "added", text: textOf(change.after) }];
  if (change.kind === "removed") return [{ kind: "removed", text: textOf(change.before) }];
  return diffTexts(textOf(change.before), textOf(change.after));
}

function Kind({ kind }: { readonly kind: Change<unknown>["kind"] }): VNode {
  return <span class={`chip kind-${kind}`}>{kind}</span>;
}

/** The changes of messages in order; runs of messages that are the same are folded. */
function MessageChanges({ changes }: { readonly changes: readonly Change<Message>[] }): VNode {
  const groups: (Change<Message> | { readonly kind: "run"; readonly changes: Change<Message>[] })[] = [];
  for (const change of changes) {
    const last = groups.at(-1);
    if (change.kind !== "same") groups.push(change);
    else if (last?.kind === "run") last.changes.push(change);
    else groups.push({ kind: "run", changes: [change] });
  }
  return (
    <section class="stack" aria-label="Changes of messages">
      <h3>Messages</h3>
      {groups.map((group, at) =>
        group.kind === "run" ? (
          <Unchanged key={at} changes={group.changes} />
        ) : (
          <MessageChange key={at} change={group} isFirst={groups.findIndex(({ kind }) => kind !== "run") === at} />
        ),
      )}
    </section>
  );
}

function Unchanged({ changes }: { readonly changes: readonly Change<Message>[] }): VNode {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="unchanged" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{countInWords(changes.length, "unchanged message")}</summary>
      {isOpen && (
        <div class="stack">
          {changes.map((change, at) => (
            <WholeMessage key={at} change={change} />
          ))}
        </div>
      )}
    </details>
  );
}

/** Its path in the later request; of a removed message, in the earlier one. */
function pathOfChange(change: Change<Message>): string {
  const [message, at] = change.kind === "removed" ? [change.before, change.from] : [change.after, change.at];
  return message.path ?? `messages[${at}]`;
}

function WholeMessage({
  change,
  kind,
}: {
  readonly change: Change<Message>;
  readonly kind?: ComponentChildren;
}): VNode {
  const message = "after" in change ? change.after : change.before;
  return (
    <MessageCard role={message.role} note={pathOfChange(change)}>
      {kind}
      {message.role === "tool" ? <ResultView result={message} /> : <Parts content={message.content} />}
    </MessageCard>
  );
}

interface MessageChangeProperties {
  readonly change: Change<Message>;
  /** The prompts differ from here on. */
  readonly isFirst: boolean;
}

function MessageChange({ change, isFirst }: MessageChangeProperties): VNode {
  const { kind } = change;
  const content =
    kind === "changed" ? (
      <MessageCard role={change.after.role} note={pathOfChange(change)}>
        <Kind kind={kind} />
        <TextChanges changes={diffTexts(messageText(change.before), messageText(change.after))} />
      </MessageCard>
    ) : (
      <WholeMessage change={change} kind={<Kind kind={kind} />} />
    );
  return (
    <div class={`change ${kind}`} {...(isFirst && { "data-first": "" })}>
      {isFirst && <p class="note">{kind === "added" ? "New from here on:" : "The first message that differs:"}</p>}
      {content}
    </div>
  );
}

/** Characters of an unchanged text that are shown around changes. */
const shownAround = 160;

/** The changes of a text; what is the same is shown around them only. */
function TextChanges({ changes }: { readonly changes: readonly TextChange[] }): VNode {
  return (
    <div class="text-changes plain">
      {changes.map(({ kind, text }, at) => {
        if (kind === "added") return <ins key={at}>{text}</ins>;
        if (kind === "removed") return <del key={at}>{text}</del>;
        const [head, tail] = [at === 0 ? 0 : shownAround, at === changes.length - 1 ? 0 : shownAround];
        if (text.length <= head + tail + 80) return <span key={at}>{text}</span>;
        return (
          <span key={at}>
            {text.slice(0, head)}
            <UnchangedText text={text.slice(head, text.length - tail)} />
            {tail === 0 ? "" : text.slice(-tail)}
          </span>
        );
      })}
    </div>
  );
}

function UnchangedText({ text }: { readonly text: string }): VNode {
  const [isOpen, setOpen] = useState(false);
  return isOpen ? (
    <>{text}</>
  ) : (
    <button type="button" class="quiet" onClick={() => setOpen(true)}>
      … {countInWords(text.length, "unchanged character")} …
    </button>
  );
}
