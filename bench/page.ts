import { spawn } from "node:child_process";
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import type { Browser, Page } from "playwright-core";
import { findChromium } from "../test/support/chromium.ts";
import { startTruewire } from "../test/support/serve.ts";

/**
 * The page as a person meets it: milliseconds from `npm start` (whose build finds nothing to do) to the first words of an answer of the
 * bundled model in the page, and the times between frames while 200 tokens a second stream in (60 a second are 16.7 ms each). In headless
 * Chromium; without one, it says so and measures nothing.
 *
 *     npm run build && npm run bench page -- [--rounds 5] [--seconds 20]
 */
const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "20" } },
});
const rounds = Number(values.rounds);
const perSecond = 200;

/** The number below which a part of the numbers lies. */
function quantile(numbers: readonly number[], part: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) * part)] ?? Number.NaN;
}

const executablePath = findChromium();
if (executablePath === undefined) console.log("skipped: no Chromium (CHROME_PATH, or on the PATH) to open the page in");
else {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  try {
    console.log(
      `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}, Chromium ${browser.version()}`,
    );
    await measureStart(browser);
    await measureFrames(browser);
  } finally {
    await browser.close();
  }
}

async function measureStart(browser: Browser): Promise<void> {
  const listening: number[] = [];
  const answered: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    const { url, stop } = await npmStart();
    listening.push(performance.now() - begun);
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("button", { name: "Just ask" }).click();
    await page.locator(".answer .said").filter({ hasText: /\S/ }).first().waitFor();
    answered.push(performance.now() - begun);
    await page.close();
    await stop();
  }
  const milliseconds = (times: readonly number[]): string => quantile(times, 0.5).toFixed(0);
  console.log(
    `from npm start to the first words in the page: ${milliseconds(answered)} ms; to the server's address ${milliseconds(listening)} ms (medians of ${rounds})`,
  );
}

/** `npm start`, up to the line that says where it listens. */
async function npmStart(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  // A group of its own: npm hands no signal on to what it has started.
  const child = spawn("npm", ["start", "--", "--port", "0", "--log-level", "silent"], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const exited = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      const found = /(http:\/\/\S+)\/v1\b[^\n]*\n/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.on("exit", (code) => reject(new Error(`npm start exited with ${code}\n${text}`)));
  });
  return {
    url,
    stop() {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
      return exited;
    },
  };
}

async function measureFrames(browser: Browser): Promise<void> {
  const server = await startTruewire(["test/page/talker.js", "--log-level", "silent"]);
  const page = await browser.newPage();
  await page.goto(server.url);
  await page
    .getByLabel("Your message", { exact: true })
    .fill(`long ${perSecond * Number(values.seconds)} ${perSecond}`);
  await page.locator("option").first().waitFor({ state: "attached" });
  await page.keyboard.press("Enter");
  await page.locator(".answer .said").waitFor();
  const frames = await framesWhileAnswering(page);
  const [median, nearlyAll, longest] = [0.5, 0.99, 1].map((part) => quantile(frames, part).toFixed(1));
  const late = frames.filter((ms) => ms > 50).length;
  console.log(
    `${perSecond} tokens/s for ${values.seconds} s: ${frames.length} frames, ms each: median ${median}, 99 % ${nearlyAll}, longest ${longest}; ${late} longer than 50 ms`,
  );
  await page.close();
  await server.stop();
}

/** The times between frames until the answer is complete, in milliseconds. */
function framesWhileAnswering(page: Page): Promise<number[]> {
  return page.evaluate(`new Promise((resolve) => {
    const frames = [];
    let before;
    const next = (now) => {
      if (before !== undefined) frames.push(now - before);
      before = now;
      if (document.querySelector(".answer[aria-busy=true]")) requestAnimationFrame(next);
      else resolve(frames);
    };
    requestAnimationFrame(next);
  })`);
}
