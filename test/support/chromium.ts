import { execFile } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { waitMs } from "./hang.ts";

// The headless shell is the same browser without its windows, and takes a fifth less time.
const names = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "chrome",
];

/** Chromium or a browser of its kind: `$CHROME_PATH`, else the first on the PATH; undefined when there is none. */
export function findChromium(): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/bin"];
  const candidates = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return [process.env.CHROME_PATH ?? "", ...candidates].find((file) => file !== "" && isExecutable(file));
}

const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-dev-shm-usage",
  "--disable-sync",
];

/** Opens a page in a browser with a fresh profile and resolves with its document, as HTML, when its scripts have run. */
export async function openedInChromium(browser: string, url: string, timeout = waitMs): Promise<string> {
  const profile = mkdtempSync(join(tmpdir(), "truewire-chromium-"));
  try {
    const { stdout } = await promisify(execFile)(browser, [...flags, `--user-data-dir=${profile}`, "--dump-dom", url], {
      timeout,
      killSignal: "SIGKILL",
      maxBuffer: 256 * 1024 * 1024,
    });
    return stdout;
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
