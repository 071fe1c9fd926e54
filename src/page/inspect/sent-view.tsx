import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { Header, InspectedRequest, KeptText } from "../../judge/inspect/inspected-request.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { Lines } from "../parts/lines.tsx";
import { indentedJson } from "../parts/json-text.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** The request: as it came, and what was understood. */
export function SentView({ request: { request } }: { readonly request: InspectedRequest }): VNode {
  const { headers, body, understood } = request;
  return (
    <div class="stack">
      <Headers title="Headers" headers={headers} />
      {body ? <Body title="The body as it came" body={body} /> : <p class="note">{absentBody(headers)}</p>}
      {understood && <Body title="What was understood" body={understood} isIndented />}
    </div>
  );
}

/** Why there is no body to show. */
function absentBody(headers: readonly Header[]): string {
  const valueOf = (name: string): string | undefined => headers.find(([one]) => one.toLowerCase() === name)?.[1];
  const encoding = valueOf("content-encoding");
  if (encoding !== undefined && encoding !== "identity")
    return `The body came compressed (${encoding}), and such bytes are not kept.`;
  const length = valueOf("content-length");
  if (length !== undefined && length !== "0")
    return `The body of ${Number(length).toLocaleString("en")} bytes was not read.`;
  return "It came without a body.";
}

export function Headers({ title, headers }: { readonly title: string; readonly headers: readonly Header[] }): VNode {
  return (
    <details class="headers">
      <summary>
        {title} <span class="count">{headers.length}</span>
      </summary>
      <dl>
        {headers.map(([name, value], at) => (
          <div key={at}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

interface BodyProperties {
  readonly title: string;
  readonly body: KeptText;
  /** Shown as JSON with a member a line. */
  readonly isIndented?: boolean;
}

export function Body({ title, body: { text, left_out: leftOut }, isIndented = false }: BodyProperties): VNode {
  const shown = useMemo(() => (isIndented ? indentedJson(text) : text), [text, isIndented]);
  return (
    <section class="stack">
      <div class="row">
        <h3>{title}</h3>
        <CopyButton text={() => shown} />
      </div>
      <Lines label={title} text={shown} />
      {leftOut !== undefined && (
        <p class="note">The beginning; {countInWords(leftOut, "further character")} were not kept in memory.</p>
      )}
    </section>
  );
}
