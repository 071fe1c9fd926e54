import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Whether Node finds a package from every folder of temporary files, in a `node_modules` above them. Tests of its absence are then skipped;
 * this prints the reason.
 */
export function installedAbove(name: string): boolean {
  const folders = createRequire(join(tmpdir(), "truewire.js")).resolve.paths(name) ?? [];
  const found = folders.find((folder) => existsSync(join(folder, name)));
  if (found !== undefined) console.log(`skipped: Node finds ${name} in ${found} from every temporary folder`);
  return found !== undefined;
}
