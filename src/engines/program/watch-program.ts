import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

/** Editors write a file in several steps; a change counts once it has been quiet for so many milliseconds. */
const quiet = 100;

/** Calls `changed` when a program's module, or anything in its folder but dependencies, was changed. Calls do not overlap. */
export function watchProgram(path: string, changed: () => Promise<void>): FSWatcher {
  let timer: NodeJS.Timeout | undefined;
  let working = Promise.resolve();
  return watch(dirname(path), { recursive: true, persistent: false }, (_event, file) => {
    if (file !== null && /(^|[\\/])(node_modules|\.git)([\\/]|$)/.test(file)) return;
    clearTimeout(timer);
    timer = setTimeout(() => (working = working.then(changed)), quiet);
    timer.unref();
  });
}
