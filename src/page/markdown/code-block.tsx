import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "../parts/copy-button.tsx";
import type { CodeRun } from "./highlighting.ts";

/** Longer code stays in one colour. In characters. */
const maxHighlighted = 60_000;
/** Code that takes longer stays in one colour. In milliseconds. */
const maxHighlightingMs = 3000;

/** The languages that are highlighted, with the other names that models write. Each name on the left is one of highlight.js. */
const otherNames: Readonly<Record<string, string>> = {
  bash: "sh zsh",
  c: "h",
  cpp: "c++ cc hpp",
  csharp: "c# cs",
  css: "",
  diff: "patch",
  dockerfile: "docker",
  go: "golang",
  ini: "toml",
  java: "",
  javascript: "js jsx mjs cjs node",
  json: "jsonc json5 jsonl",
  kotlin: "kt",
  lua: "",
  makefile: "make mk",
  markdown: "md",
  php: "",
  powershell: "ps ps1 pwsh",
  python: "py python3",
  ruby: "rb",
  rust: "rs",
  shell: "console shellsession",
  sql: "postgresql mysql sqlite",
  swift: "",
  typescript: "ts tsx mts cts",
  xml: "html xhtml svg vue",
  yaml: "yml",
};

/** A name in an answer, in lower case → the language of highlight.js. */
export const languageNames: ReadonlyMap<string, string> = new Map(
  Object.entries(otherNames).flatMap(([name, others]) =>
    [name, ...others.split(" ")].filter((each) => each !== "").map((each) => [each, name] as const),
  ),
);

/** What the highlighting worker is asked. */
export interface CodeRequest {
  readonly id: number;
  readonly code: string;
  readonly language: string;
}

let worker: Worker | undefined;
let requests = 0;

/** Asks the worker, which is loaded with the first code. Resolves to `undefined` if there is no result. */
function highlight(code: string, language: string): Promise<readonly CodeRun[] | undefined> {
  const asked = (worker ??= new Worker(new URL("highlighting-worker.js", import.meta.url), { type: "module" }));
  const id = requests++;
  return new Promise((resolve) => {
    const finish = (runs?: readonly CodeRun[]): void => {
      clearTimeout(timer);
      asked.removeEventListener("message", read);
      resolve(runs);
    };
    const read = ({ data }: MessageEvent<{ readonly id: number; readonly runs: readonly CodeRun[] }>): void => {
      if (data.id === id) finish(data.runs);
    };
    const timer = setTimeout(() => {
      asked.terminate();
      if (worker === asked) worker = undefined;
      finish();
    }, maxHighlightingMs);
    asked.addEventListener("message", read);
    asked.addEventListener("error", () => finish(), { once: true });
    asked.postMessage({ id, code, language } satisfies CodeRequest);
  });
}

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
    void highlight(text, name).then((found) => shown && setRuns(found));
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
