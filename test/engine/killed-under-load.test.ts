import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeProgrammedModel } from "../fixtures/programmed-model.ts";
import { childrenOf, memoryOf } from "../support/processes.ts";
import { until } from "../support/scripted-engine.ts";
import { startTruewire } from "../support/serve.ts";
import { isNightly, times } from "../support/runs.ts";

/** How often the model's process is killed. */
const kills = times(5);
const clients = 16;

/** An API, as a client of its streams knows it. */
interface Api {
  readonly path: string;
  readonly body: object;
  /** A stream that came to its end, and one that ended with an error, both with the API's own end mark. */
  readonly whole: RegExp;
  readonly failed: RegExp;
}

const messages = [{ role: "user", content: "#endless" }];
const apis: readonly Api[] = [
  {
    path: "/v1/chat/completions",
    body: { messages, max_tokens: 300 },
    whole: /"finish_reason":"length"[^]*\n\ndata: \[DONE\]\n\n$/,
    failed: /\n\ndata: \{"error":\{[^\n]*\}\}\n\ndata: \[DONE\]\n\n$/,
  },
  {
    path: "/v1/completions",
    body: { prompt: "<|script:endless|>", max_tokens: 300 },
    whole: /"finish_reason":"length"[^]*\n\ndata: \[DONE\]\n\n$/,
    failed: /\n\ndata: \{"error":\{[^\n]*\}\}\n\ndata: \[DONE\]\n\n$/,
  },
  {
    path: "/v1/responses",
    body: { input: messages, max_output_tokens: 300 },
    whole: /\n\nevent: response\.incomplete\ndata: [^\n]*\n\ndata: \[DONE\]\n\n$/,
    failed: /\n\nevent: response\.failed\ndata: [^\n]*\n\ndata: \[DONE\]\n\n$/,
  },
  {
    path: "/v1/messages",
    body: { messages, max_tokens: 300 },
    whole: /\n\nevent: message_stop\ndata: [^\n]*\n\n$/,
    failed: /\n\nevent: error\ndata: [^\n]*\n\n$/,
  },
];

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
  readonly isWhole: boolean;
}

/** Asks on a connection of its own. */
function ask(url: string, { path, body }: Api, onText: () => void): Promise<Answer> {
  return new Promise((settle, reject) => {
    const asking = httpRequest(`${url}${path}`, {
      method: "POST",
      agent: false,
      headers: { "content-type": "application/json" },
    });
    asking.on("error", reject);
    asking.on("response", (response) => {
      const { statusCode: status = 0, headers } = response;
      let text = "";
      const done = (isWhole: boolean) => () => settle({ status, retryAfter: headers["retry-after"], text, isWhole });
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (piece.includes("tick")) onText();
      });
      response.on("end", done(true)).on("error", done(false));
    });
    asking.end(JSON.stringify({ model: "programmed", stream: true, ...body }));
  });
}

type Kind = "whole" | "failed" | "refused";

/** What an answer was; a text: what was wrong with it. */
function kindOf({ whole, failed }: Api, { status, retryAfter, text, isWhole }: Answer): Kind | string {
  if (!isWhole) return `it was cut off: ${text.slice(-200)}`;
  if (status === 200)
    return whole.test(text) ? "whole" : failed.test(text) ? "failed" : `it has no end: ${text.slice(-300)}`;
  // It had not begun. 529 is Anthropic's.
  return [503, 529].includes(status) && retryAfter !== undefined ? "refused" : `${status}: ${text}`;
}

const isLinux = process.platform === "linux";
if (!isLinux) console.log("skipped: what a process holds is read from /proc");

test.skipIf(!isLinux)(
  "a model's process that is killed again and again under load: each stream ends in its API's shape, and nothing is left behind",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "truewire-"));
    const temporary = join(folder, "tmp");
    mkdirSync(temporary);
    const model = join(folder, "programmed.gguf");
    writeProgrammedModel(model);
    const args = [model, "--threads", "1", "--gpu", "off", "--slots", String(clients), "--context-size", "1024"];
    const server = await startTruewire(args, { env: { TMPDIR: temporary } });
    const pid = server.process.pid ?? 0;
    try {
      const stopping = new AbortController();
      const running = new Set<number>();
      const tally: Record<string, number> = {};
      let answered = 0;
      const client = async (api: Api, number: number): Promise<void> => {
        while (!stopping.signal.aborted) {
          const answer = await ask(server.url, api, () => running.add(number));
          running.delete(number);
          const kind = kindOf(api, answer);
          if (kind === "whole") answered++;
          tally[kind] = (tally[kind] ?? 0) + 1;
          if (kind === "refused") await new Promise((wait) => setTimeout(wait, Number(answer.retryAfter) * 1000));
        }
      };
      const descriptors = (): number => readdirSync(`/proc/${pid}/fd`).length;
      const before = { descriptors: descriptors(), memory: 0 };
      const all = Promise.all(
        Array.from({ length: clients / apis.length }, () => apis)
          .flat()
          .map(client),
      );
      let last: number | undefined;
      for (let killed = 1; killed <= kills; killed++) {
        // Mostly in the middle of answers, sometimes while it loads.
        const loads = killed % 5 === 0;
        const answeredBefore = answered;
        const isDue = (): boolean => loads || (answered > answeredBefore && running.size >= clients / 2);
        const child = (): number | undefined => childrenOf(pid).find((each) => each !== last);
        await until(() => child() !== undefined && isDue(), "it is started again, and streams run");
        await new Promise((wait) => setTimeout(wait, Math.random() * 300));
        last = child();
        process.kill(last ?? 0, "SIGKILL");
        if (killed === Math.ceil(kills / 5)) before.memory = memoryOf(pid).now;
      }
      const answeredThen = answered;
      await until(() => answered >= answeredThen + clients, "it answers again");
      stopping.abort();
      await all;
      expect(Object.keys(tally).filter((kind) => !["whole", "failed", "refused"].includes(kind))).toEqual([]);
      // Each kill ends what runs; a model that answers in between is started again at once.
      expect(tally.failed).toBeGreaterThanOrEqual(kills * 0.8);
      expect(server.stderr()).not.toContain("times in a row");
      const health = (await (await fetch(`${server.url}/health`)).json()) as object;
      expect(JSON.stringify(health)).toContain(`"restarts":${kills}`);
      expect(health).toMatchObject({ status: "ok" });
      await until(() => descriptors() <= before.descriptors + 1, "its connections are closed");
      expect(childrenOf(pid)).toHaveLength(1);
      expect(readdirSync(temporary)).toEqual([]);
      const now = memoryOf(pid).now;
      if (isNightly)
        console.log(
          `${kills} kills: ${JSON.stringify(tally)}, ${before.memory.toFixed()} MiB then, ${now.toFixed()} MiB now; ${JSON.stringify(health)}`,
        );
      expect(now).toBeLessThan(before.memory + 64);
    } finally {
      await server.stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
