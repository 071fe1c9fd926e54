import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { baseUrl } from "../api/base-url.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { copyAs, languages } from "./copy-as.ts";
import type { Language } from "./copy-as.ts";
import type { Parameter } from "./parameter.ts";
import type { ChatBody } from "./request-body.ts";

interface Properties {
  readonly body: ChatBody;
  readonly table: readonly Parameter[];
  readonly keyNeeded: boolean;
  readonly onClose: () => void;
}

/** What was just asked, as a program. */
export function CopyAsDialog({ body, table, keyNeeded, onClose }: Properties): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [language, setLanguage] = useState<Language>("curl");
  useEffect(() => dialog.current?.showModal(), []);
  const code = copyAs(language, body, { baseUrl: baseUrl.href.replace(/\/$/, ""), keyNeeded, table });
  return (
    <dialog ref={dialog} class="copy-as" aria-labelledby="copy-title" onClose={onClose}>
      <div class="stack">
        <h2 id="copy-title">Ask the same from elsewhere</h2>
        <fieldset class="tabs">
          <legend class="unseen">Language</legend>
          {languages.map((name) => (
            <label key={name}>
              <input type="radio" name="language" checked={name === language} onChange={() => setLanguage(name)} />
              {name}
            </label>
          ))}
        </fieldset>
        <pre tabIndex={0} aria-label={`The request for ${language}`}>
          {code}
        </pre>
        <div class="row end">
          <CopyButton text={() => code} />
          <button type="button" class="main" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
      </div>
    </dialog>
  );
}
