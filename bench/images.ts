import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import {
  randomPicture,
  tone,
  visionFamilies,
  writeRandomHearing,
  writeRandomVision,
} from "../test/fixtures/random-vision.ts";
import { startTruewire } from "../test/support/serve.ts";
import { llamaServerFile, startLlamaServer } from "./llama-server.ts";

/**
 * Compares images and audio on local models with llama.cpp's server, which `TRUEWIRE_LLAMA_SERVER` names, of the same libraries: random text models and
 * projectors, the same conversations. Prints the prompt's tokens of both, the answer's tokens that are the same, and the largest difference of
 * their logprobs; and, of Truewire alone, the tokens that the next turn finds in the cache. Exits with 1 if a count or a text differs.
 *
 *     npm run build && TRUEWIRE_LLAMA_SERVER=…/llama-server npm run bench images -- [--tokens 32]
 */
const { values } = parseArgs({ options: { tokens: { type: "string", default: "32" } } });
const tokens = Number(values.tokens);

interface Logprob {
  readonly bytes: readonly number[] | null;
  readonly token: string;
  readonly logprob: number;
}
interface Answer {
  readonly choices: readonly {
    readonly message: { readonly content: string };
    readonly logprobs: { readonly content: readonly Logprob[] };
  }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details?: { readonly cached_tokens: number };
  };
}

type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

const words = (text: string): Part => ({ type: "text", text });
const picture = (columns: number, rows: number, seed: number): Part => {
  const url = `data:image/png;base64,${randomPicture(columns, rows, seed).toString("base64")}`;
  return { type: "image_url", image_url: { url } };
};
const ok = { role: "assistant", content: "ok" };
const recording = (hertz: number) => {
  return { type: "input_audio", input_audio: { data: tone(hertz).toString("base64"), format: "wav" } };
};
const withAudio = { "a recording": [{ role: "user", content: [words("What is it?"), recording(440)] }] };
const withImages: Readonly<Record<string, readonly unknown[]>> = {
  "no image": [{ role: "user", content: [words("What is this?")] }],
  "one image": [{ role: "user", content: [words("What is this?"), picture(300, 200, 2)] }],
  "two and one": [
    { role: "user", content: [picture(96, 64, 1), words("and"), picture(300, 200, 2), words("which differ?")] },
    ok,
    { role: "user", content: [words("Sure?"), picture(64, 96, 3)] },
  ],
  large: [{ role: "user", content: [picture(1000, 700, 4), words("Describe it.")] }],
};

async function ask(url: string, messages: readonly unknown[]): Promise<Answer> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "m",
      messages,
      max_tokens: tokens,
      temperature: 0,
      logprobs: true,
      top_logprobs: 1,
      ignore_eos: true,
    }),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Answer;
}

/** The tokens that both generate, up to the first difference, and the largest difference of their logprobs. */
function compared(ours: Answer, theirs: Answer): { readonly same: number; readonly difference: number } {
  const of = (answer: Answer): readonly Logprob[] => answer.choices[0]?.logprobs.content ?? [];
  let difference = 0;
  for (const [at, mine] of of(ours).entries()) {
    const other = of(theirs)[at];
    if (!other || other.bytes?.join() !== mine.bytes?.join()) return { same: at, difference };
    difference = Math.max(difference, Math.abs(other.logprob - mine.logprob));
  }
  return { same: of(ours).length, difference };
}

async function compare(
  family: string,
  { model, mmproj }: ReturnType<typeof writeRandomVision>,
  conversations: Readonly<Record<string, readonly unknown[]>>,
  libraries: string,
): Promise<boolean> {
  const sizes = { slots: 1, contextSize: 4096, threads: 2 };
  const theirs = await startLlamaServer({ model, ...sizes, more: ["--mmproj", mmproj, "--jinja", "-fa", "off"] });
  if (!theirs) throw new Error("TRUEWIRE_LLAMA_SERVER names no llama-server");
  const options = ["--flash-attention", "off", "--gpu", "off", "--context-size", "4096", "--threads", "2"];
  const target = [`m=${model}`, "--mmproj", mmproj, "--llama-libraries", libraries];
  const ours = await startTruewire([...target, ...options, "--log-level", "error"]);
  let isSame = true;
  try {
    for (const [name, messages] of Object.entries(conversations)) {
      const [mine, other] = [await ask(ours.url, messages), await ask(theirs.url, messages)];
      const next = await ask(ours.url, [...messages, ok, { role: "user", content: "And now?" }]);
      const counts = [mine, other].map(({ usage }) => usage.prompt_tokens);
      const { same, difference } = compared(mine, other);
      const texts = [mine, other].map(({ choices }) => choices[0]?.message.content);
      isSame &&= counts[0] === counts[1] && texts[0] === texts[1];
      console.log(
        [
          family.padEnd(9),
          name.padEnd(12),
          `prompt ${counts.join(counts[0] === counts[1] ? " = " : " ≠ ")}`.padEnd(18),
          `text ${texts[0] === texts[1] ? "same" : "differs"}`.padEnd(13),
          `${same} tokens with logprobs within ${difference.toExponential(1)}`.padEnd(38),
          `next turn: ${next.usage.prompt_tokens_details?.cached_tokens} of ${next.usage.prompt_tokens} cached`,
        ].join(" "),
      );
    }
  } finally {
    await ours.stop();
    await theirs.stop();
  }
  return isSame;
}

const folder = mkdtempSync(join(tmpdir(), "truewire-images-"));
try {
  const libraries = dirname(llamaServerFile ?? "");
  for (const family of visionFamilies)
    if (!(await compare(family, writeRandomVision(folder, family), withImages, libraries))) process.exitCode = 1;
  if (!(await compare("qwen2a", writeRandomHearing(folder), withAudio, libraries))) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
