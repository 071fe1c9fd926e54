import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

/** Editors write a file in several steps; a change counts once it has been quiet for so many milliseconds. */
const quiet = 100;

/** Code that a program may import. Not data: a program, or the server's own log, may be writing that all the time. */
const isCode = /\.[cm]?[jt]sx?$/i;

/** Calls `changed` when a program's module, or other code in its folder but for dependencies, was changed. Calls do not overlap. */
export function watchProgram(path: string, changed: () => Promise<void>): FSWatcher {
  let timer: NodeJS.Timeout | undefined;
  let working = Promise.resolve();
  return watch(dirname(path), { recursive: true, persistent: false }, (_event, file) => {
    if (file !== null && (!isCode.test(file) || /(^|[\\/])(node_modules|\.git)([\\/]|$)/.test(file))) return;
    clearTimeout(timer);
    timer = setTimeout(() => (working = working.then(changed)), quiet);
    timer.unref();
  });
}
