import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { InspectedRequest } from "../../judge/inspect/inspected-request.ts";
import { Field } from "../parts/field.tsx";
import { useModal } from "../parts/modal.ts";
import { indentedJson } from "../parts/json-text.ts";
import { jsonMistake, resentHeaders } from "./resend.ts";

interface Properties {
  readonly request: InspectedRequest;
  /** Rejects with what is shown. */
  readonly onSend: (body: string) => Promise<void>;
  readonly onClose: () => void;
}

/** Edits the body of a request before it is sent again. */
export default function ResendDialog({ request, onSend, onClose }: Properties): VNode {
  const dialog = useModal();
  const initial = useMemo(() => indentedJson(request.request.body?.text ?? ""), [request.id]);
  const [text, setText] = useState(initial);
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const editor = dialog.current?.querySelector("textarea");
    editor?.setSelectionRange(0, 0);
    if (editor) editor.scrollTop = 0;
  }, []);
  const mistake = useMemo(() => jsonMistake(text), [text]);
  const send = (event: Event): void => {
    event.preventDefault();
    if (mistake !== undefined || isSending) return;
    setSending(true);
    setProblem("");
    onSend(text).catch((error: unknown) => {
      setSending(false);
      setProblem(error instanceof Error ? error.message : String(error));
    });
  };
  const names = resentHeaders(request).map(([name]) => name);
  return (
    <dialog ref={dialog} class="copy-as" aria-labelledby="resend-title" onClose={onClose}>
      <form class="stack" onSubmit={send}>
        <h2 id="resend-title">
          Edit and resend {request.method} {request.path}
        </h2>
        <Field
          label="Body"
          note={`Sent with the page's key and these headers of the request: ${names.join(", ") || "none"}. Ctrl+Enter sends.`}
        >
          {(ids) => (
            <textarea
              {...ids}
              class="code body-editor"
              spellcheck={false}
              value={text}
              aria-invalid={mistake !== undefined}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
              }}
            />
          )}
        </Field>
        <p class={mistake === undefined ? "note" : "banner wrong"} role="status">
          {mistake === undefined ? "The body is JSON." : `The body is not JSON: ${mistake}.`}
        </p>
        {problem !== "" && <p class="banner wrong">{problem}</p>}
        <div class="row end">
          <button type="button" disabled={text === initial} onClick={() => setText(initial)}>
            Undo all edits
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="main" aria-disabled={mistake !== undefined || isSending}>
            {isSending ? "Sending…" : "Send"}
          </button>
        </div>
      </form>
    </dialog>
  );
}
