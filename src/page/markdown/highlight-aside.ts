import type { CodeRun } from "./highlighting.ts";

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

/**
 * Divides code into runs of one colour, in a worker that is loaded with the first code. `language` is a value of `languageNames`. Resolves to
 * `undefined` if the worker fails or takes too long.
 */
export function highlightAside(code: string, language: string): Promise<readonly CodeRun[] | undefined> {
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
