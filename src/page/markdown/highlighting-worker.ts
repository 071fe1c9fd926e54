import { runsOf } from "./highlighting.ts";
import type { CodeRequest } from "./highlight-aside.ts";

// A worker can be ended: hostile code may keep the expressions of a language busy.
addEventListener("message", ({ data: { id, code, language } }: MessageEvent<CodeRequest>) =>
  postMessage({ id, runs: runsOf(code, language) }),
);
