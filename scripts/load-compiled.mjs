// Runs a script of scripts/build-cli.mjs with the code that V8 has compiled for it in an earlier process, and lets the next process have that of
// this one: V8 would compile for a fifth of a gateway's start. Node's own `module.enableCompileCache` begins with 22.8, and does not reach the
// processes that a server starts. The build copies this file into dist/chunks.
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cachedDataVersionTag } from "node:v8";
import { Script } from "node:vm";
import { crc32 } from "node:zlib";

/** A process may be killed: compiled code is stored this many milliseconds after the load, too. It has the functions that were called until then. */
const storedAfterMs = 1000;
/** Code that is older is of a version that was replaced, or compiled again once. */
const storedForMs = 30 * 24 * 3_600_000;

/** Returns the exports of the script with this name, which is in the folder of this module. */
export function load(name) {
  const filename = fileURLToPath(new URL(name, import.meta.url));
  const stored = placeOfCode(name);
  const cachedData = stored && storedCode(stored);
  const script = new Script(readFileSync(filename, "latin1"), { filename, ...(cachedData && { cachedData }) });
  const exports = {};
  script.runInThisContext()(exports, createRequire(filename), (id) => import(id), filename);
  if (stored && (!cachedData || script.cachedDataRejected)) {
    const store = () => storeCode(stored, script.createCachedData());
    setTimeout(store, storedAfterMs).unref();
    process.once("exit", store);
  }
  return exports;
}

/**
 * Where compiled code is stored; undefined without a folder for caches. V8 refuses code of another version, of other options and for another
 * processor, which its tag names. The name of the script has the digest of its text.
 */
function placeOfCode(name) {
  const { XDG_CACHE_HOME, LOCALAPPDATA, HOME } = process.env;
  const caches = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && join(HOME, ".cache"));
  const tag = cachedDataVersionTag().toString(16);
  return caches && existsSync(caches) ? join(caches, "truewire", "compiled", `${name}.${tag}`) : undefined;
}

/** V8 does not find damage, and would crash. */
function storedCode(path) {
  try {
    const bytes = readFileSync(path);
    const code = bytes.subarray(4);
    return crc32(code) === bytes.readUInt32LE() ? code : undefined;
  } catch {
    // The first start.
    return undefined;
  }
}

function storeCode(path, code) {
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(code));
  try {
    const folder = dirname(path);
    mkdirSync(folder, { recursive: true });
    for (const name of readdirSync(folder)) {
      const file = join(folder, name);
      if (name.includes(".script.js.") && Date.now() - statSync(file).mtimeMs > storedForMs) rmSync(file);
    }
    // Other processes read and write this file at any time.
    const written = `${path}.${process.pid}`;
    writeFileSync(written, Buffer.concat([checksum, code]));
    renameSync(written, path);
  } catch {
    // A full or read-only disk: the next start compiles again.
  }
}
