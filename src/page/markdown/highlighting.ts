import highlighter from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import powershell from "highlight.js/lib/languages/powershell";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = {
  bash,
  c,
  cpp,
  csharp,
  css,
  diff,
  dockerfile,
  go,
  ini,
  java,
  javascript,
  json,
  kotlin,
  lua,
  makefile,
  markdown,
  php,
  powershell,
  python,
  ruby,
  rust,
  shell,
  sql,
  swift,
  typescript,
  xml,
  yaml,
};
for (const [name, language] of Object.entries(languages)) highlighter.registerLanguage(name, language);

/** A part of a code with one colour: a scope of highlight.js such as `keyword`, or an empty string, and its length in characters. */
export type CodeRun = readonly [scope: string, length: number];

/** Divides code into runs, which together have its length. `language` is a name that highlight.js knows. */
export function runsOf(code: string, language: string): CodeRun[] {
  const { value } = highlighter.highlight(code, { language, ignoreIllegals: true });
  const runs: [string, number][] = [];
  const scopes = [""];
  for (const [part, name] of value.matchAll(/<span class="([^"]*)">|<\/span>|&[#\w]+;|[^<&]+/g)) {
    const scope = scopes.at(-1) ?? "";
    // The code of another language inside has the class `language-…`.
    if (name !== undefined) scopes.push(/^hljs-([a-z]+)/.exec(name)?.[1] ?? scope);
    else if (part === "</span>") scopes.pop();
    else {
      const length = part.startsWith("&") ? 1 : part.length;
      const last = runs.at(-1);
      if (last && last[0] === scope) last[1] += length;
      else runs.push([scope, length]);
    }
  }
  return runs;
}
