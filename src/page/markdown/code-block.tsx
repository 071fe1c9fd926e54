import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "../parts/copy-button.tsx";
import { highlightAside, languageNames } from "./highlight-aside.ts";
import type { CodeRun } from "./highlighting.ts";

/** Longer code stays in one colour. In characters. */
const maxHighlighted = 60_000;
interface Properties {
  /** As the answer names it; may be empty. */
  readonly language: string;
  /** The code, in parts of some lines: those that are out of sight are not laid out. */
  readonly chunks: readonly string[];
  /** The code is complete: it can be highlighted. */
  readonly complete: boolean;
}

/** Code with its language, a button that copies it, and colours once it is complete. */
export function CodeBlock({ language, chunks, complete }: Properties): VNode {
  const [runs, setRuns] = useState<readonly CodeRun[]>();
  const name = languageNames.get(language.toLowerCase());
  const code = (): string => chunks.join("").replace(/\n$/, "");
  useEffect(() => {
    const text = chunks.join("");
    if (!complete || name === undefined || text.length > maxHighlighted) return setRuns(undefined);
    let shown = true;
    void highlightAside(text, name).then((found) => shown && setRuns(found));
    return () => {
      shown = false;
    };
  }, [complete, name, chunks.length, chunks.at(-1)]);
  return (
    <div class="code-block">
      <div class="code-bar">
        <span class="language">{language}</span>
        <CopyButton text={code} />
      </div>
      <pre tabIndex={0} aria-label={language === "" ? "Code" : `Code, ${language}`} role="group">
        <code>{runs ? <ColoredChunks chunks={chunks} runs={runs} /> : chunks.map(plainChunk)}</code>
      </pre>
    </div>
  );
}

function plainChunk(text: string, at: number): VNode {
  return (
    <span key={at} class="code-chunk">
      {text}
    </span>
  );
}

/** The chunks with an element for each run that has a scope. */
function ColoredChunks({
  chunks,
  runs,
}: {
  readonly chunks: readonly string[];
  readonly runs: readonly CodeRun[];
}): VNode {
  let run = 0;
  /** How much of the current run precedes the current chunk. */
  let used = 0;
  const colored = chunks.map((text, at) => {
    const parts: (VNode | string)[] = [];
    for (let from = 0; from < text.length && run < runs.length;) {
      const [scope, length] = runs[run] ?? ["", 0];
      const part = text.slice(from, from + length - used);
      parts.push(scope === "" ? part : <span class={`scope-${scope}`}>{part}</span>);
      from += part.length;
      used += part.length;
      if (used < length) continue;
      run++;
      used = 0;
    }
    return (
      <span key={at} class="code-chunk">
        {parts}
      </span>
    );
  });
  return <>{colored}</>;
}
