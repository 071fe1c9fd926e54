import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { InspectedRequest } from "../../judge/inspect/inspected-request.ts";
import { JsonTree } from "./json-tree-view.tsx";
import { jsonIn } from "../parts/json-text.ts";
import { wholeText } from "./readable-request.ts";
import { countInWords } from "../parts/count-in-words.ts";

interface Document {
  readonly name: string;
  /** undefined: it is not kept completely. */
  readonly text: string | undefined;
}

/** The JSON of a request as a tree: of its body, its answer, and the bodies that upstreams got and sent. */
export default function JsonView({ request }: { readonly request: InspectedRequest }): VNode {
  const [chosen, setChosen] = useState(0);
  const documents = useMemo(() => documentsOf(request), [request]);
  const document = documents[chosen] ?? documents[0];
  const value = useMemo(() => jsonIn(document?.text ?? ""), [document?.text]);
  if (!document) return <p class="note">The request and its answer have no bodies.</p>;
  return (
    <div class="stack">
      <label class="field">
        <span>Document</span>
        <select
          value={Math.min(chosen, documents.length - 1)}
          onChange={({ currentTarget }) => setChosen(Number(currentTarget.value))}
        >
          {documents.map(({ name, text }, at) => (
            <option key={name} value={at}>
              {name}
              {text === undefined ? "" : `, ${countInWords(text.length, "character")}`}
            </option>
          ))}
        </select>
      </label>
      {document.text === undefined ? (
        <p class="note">It is too long to be kept completely. What is kept is shown in Request and Wire.</p>
      ) : value === undefined ? (
        <p class="note">It is not JSON. Its text is shown in Request and Wire.</p>
      ) : (
        <JsonTree key={document.name} label={document.name} value={value} />
      )}
    </div>
  );
}

function documentsOf({ request, response, asked }: InspectedRequest): Document[] {
  const { body, understood } = request;
  return [
    ...(body ? [{ name: "The request's body", text: body.left_out === undefined ? body.text : undefined }] : []),
    ...(response.body.chunks.length > 0 ? [{ name: "The answer", text: wholeText(response.body) }] : []),
    ...(understood
      ? [
          {
            name: "The request as it was understood",
            text: understood.left_out === undefined ? understood.text : undefined,
          },
        ]
      : []),
    ...asked.flatMap(({ body: sent, response: received }, at) => {
      const attempt = asked.length > 1 ? `, attempt ${at + 1}` : "";
      return [
        { name: `Sent upstream${attempt}`, text: sent.left_out === undefined ? sent.text : undefined },
        ...(received.chunks.length > 0
          ? [{ name: `Received from upstream${attempt}`, text: wholeText(received) }]
          : []),
      ];
    }),
  ];
}
