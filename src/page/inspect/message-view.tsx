import type { ComponentChildren, VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { AssistantPart, Content, ContentPart, ToolCall, ToolMessage } from "../../wire/core/message.ts";
import type { ReasoningState } from "../../wire/core/turn-state.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { JsonTree } from "./json-tree-view.tsx";
import { parseJson } from "../parts/json-text.ts";
import { Lines } from "../parts/lines.tsx";
import { countInWords } from "../parts/count-in-words.ts";

/** A longer text is folded: in characters and in lines. */
const foldedLength = 1200;
const foldedLines = 16;
/** A longer text is painted in blocks, of which only the visible ones are laid out. In characters. */
const paintedLength = 20_000;

/** A text, folded if it is long. */
export function FoldedText({ text, label = "Text" }: { readonly text: string; readonly label?: string }): VNode {
  const [isOpen, setOpen] = useState(false);
  const end = useMemo(() => beginningOf(text), [text]);
  if (text === "") return <p class="note">An empty text.</p>;
  if (end === text.length) return <Plain text={text} />;
  return (
    <div class="folded">
      {!isOpen ? (
        <Plain text={`${text.slice(0, end)}…`} />
      ) : text.length > paintedLength ? (
        <Lines label={label} text={text} />
      ) : (
        <Plain text={text} />
      )}
      <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Show less" : `Show all ${countInWords(text.length, "character")}`}
      </button>
    </div>
  );
}

function Plain({ text }: { readonly text: string }): VNode {
  return (
    <p class="plain" dir="auto">
      {text}
    </p>
  );
}

/** The end of the part of a text that is shown at first. A text that is less than 200 characters longer is shown completely. */
function beginningOf(text: string): number {
  let end = 0;
  for (let line = 0; line < foldedLines && end !== -1; line++) end = text.indexOf("\n", end + 1);
  const limit = Math.min(end === -1 ? text.length : end, foldedLength);
  if (text.length - limit < 200) return text.length;
  return /[\uD800-\uDBFF]/.test(text[limit - 1] ?? "") ? limit - 1 : limit;
}

interface CardProperties {
  readonly role: string;
  /** Next to the role: a name, a path. */
  readonly note?: string;
  readonly copied?: () => string;
  readonly place?: string;
  readonly children: ComponentChildren;
}

/** A message with its role. */
export function MessageCard({ role, note = "", copied, place, children }: CardProperties): VNode {
  return (
    <article class={`message from-${role}`} {...(place !== undefined && { "data-place": place })}>
      <header class="row">
        <h4>{role}</h4>
        <span class="note">{note}</span>
        {copied && <CopyButton text={copied} />}
      </header>
      {children}
    </article>
  );
}

interface PartsProperties {
  readonly content: Content | readonly AssistantPart[] | null;
  /** Of the calls, by their ids. */
  readonly results?: ReadonlyMap<string, ToolMessage>;
}

/** The parts of a message in order. */
export function Parts({ content, results }: PartsProperties): VNode {
  if (content === null || content.length === 0)
    return <p class="note">No content, or none that the server reads: see JSON.</p>;
  if (typeof content === "string") return <FoldedText text={content} />;
  return (
    <>
      {content.map((part, at) => (
        <Part key={at} part={part} result={part.type === "tool-call" ? results?.get(part.id) : undefined} />
      ))}
    </>
  );
}

interface PartProperties {
  readonly part: ContentPart | AssistantPart;
  readonly result: ToolMessage | undefined;
}

function Part({ part, result }: PartProperties): VNode {
  switch (part.type) {
    case "text":
      return <FoldedText text={part.text} />;
    case "refusal":
      return (
        <p class="plain refusal" dir="auto">
          {part.refusal}
        </p>
      );
    case "reasoning":
      return <ReasoningView text={part.text} summary={part.summary ?? []} state={part.state} />;
    case "tool-call":
      return <CallView call={part} result={result} />;
    case "image":
      return <ImageView url={part.url} />;
    case "audio":
      return (
        <p class="note">
          Audio ({part.format}), {countInWords(part.data.length, "character")} of base64.
        </p>
      );
    case "file":
      return (
        <div class="stack">
          <p class="note">File {part.name ?? part.id ?? part.url ?? ""}</p>
          {part.text !== undefined && <FoldedText text={part.text} />}
        </div>
      );
  }
}

interface ReasoningProperties {
  readonly text: string;
  readonly summary: readonly string[];
  readonly state: ReasoningState | undefined;
}

/** Reasoning, folded. */
export function ReasoningView({ text, summary, state }: ReasoningProperties): VNode {
  const shown = text === "" ? summary.join("\n\n") : text;
  if (shown === "") {
    return (
      <p class="note">
        {typeof state?.value === "string"
          ? `Encrypted reasoning, ${countInWords(state.value.length, "character")}.`
          : "Reasoning without a text."}
      </p>
    );
  }
  return (
    <details class="reasoning">
      <summary>
        {text === "" ? "Summary of the reasoning" : "Reasoning"}{" "}
        <span class="count">{countInWords(shown.length, "character")}</span>
      </summary>
      <FoldedText text={shown} label="Reasoning" />
    </details>
  );
}

/** A call of a tool with its arguments, and its result if it is known. */
export function CallView({
  call,
  result,
  note,
  children,
}: {
  readonly call: ToolCall;
  readonly result?: ToolMessage | undefined;
  /** In place of the call's id. */
  readonly note?: string;
  readonly children?: ComponentChildren;
}): VNode {
  const { name, id, arguments: written, kind } = call;
  const value = useMemo(() => (kind === "custom" ? undefined : jsonOf(written)), [written, kind]);
  return (
    <section class="tool-call" aria-label={`Call of ${name}`}>
      <header class="row">
        <h5>
          calls <code>{name}</code>
        </h5>
        <span class="note">{note ?? id}</span>
        <CopyButton text={() => written} label="Copy arguments" />
      </header>
      {value === undefined ? (
        <FoldedText text={written} label={`Arguments of ${name}`} />
      ) : (
        <JsonTree label={`Arguments of ${name}`} value={value} isSmall />
      )}
      {result && <ResultView result={result} />}
      {children}
    </section>
  );
}

/** The result of a call. */
export function ResultView({ result }: { readonly result: ToolMessage }): VNode {
  return (
    <div class="tool-result">
      <p class="row">
        <span class="note">Result</span>
        {result.isError === true && <span class="chip error">error</span>}
      </p>
      <Parts content={result.content} />
    </div>
  );
}

/** undefined: the text is not a list or an object. */
function jsonOf(text: string): unknown {
  try {
    const value: unknown = parseJson(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An image that the request itself contains. Images at other addresses are not loaded. */
function ImageView({ url }: { readonly url: string }): VNode {
  const [isBroken, setBroken] = useState(false);
  const isOwn = /^data:image\//i.test(url);
  if (!isOwn || isBroken) {
    return (
      <p class="note">
        {isOwn ? "An image that this browser cannot show: " : "An image at another address, which is not loaded: "}
        <code>{url.length > 200 ? `${url.slice(0, 200)}…` : url}</code>
      </p>
    );
  }
  return (
    <figure class="thumbnail">
      <img src={url} alt="Part of the message" loading="lazy" onError={() => setBroken(true)} />
      <figcaption>
        <span class="note">
          {/^data:([^;,]*)/.exec(url)?.[1]}, {countInWords(url.length, "character")}
        </span>
      </figcaption>
    </figure>
  );
}
