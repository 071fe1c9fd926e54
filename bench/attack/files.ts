import type { RequestListener } from "node:http";
import { writeRandomVision } from "../../test/fixtures/random-vision.ts";
import { keyOf, withKey } from "../../test/keys/support.ts";
import {
  inflatingPng,
  manyScans,
  repeatedSharedText,
  slowPdf,
  twiceFlatePdf,
  zip64Docx,
} from "../../test/support/hostile-files.ts";
import { pdf } from "../../test/support/office-files.ts";
import { childrenOf, memoryOf } from "../../test/support/processes.ts";
import { findMtmd } from "../../src/engines/llama/vision/mtmd-api.ts";
import type { Attack } from "./attack.ts";
import { type Attacked, attackOn, chat, outcomeOf } from "./gateway.ts";

/** An upstream that takes no files: it gets their text. */
const noFiles = "requests: { files: false }";
const answer: RequestListener = (request, response) => {
  request.resume().on("end", () => {
    const message = { role: "assistant", content: "read" };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1,
        model: "up",
        choices: [{ index: 0, message, finish_reason: "stop" }],
      }),
    );
  });
};

const streams = 20;

function fileOf(bytes: Buffer): unknown {
  return [{ type: "file", file: { filename: "a", file_data: `data:;base64,${bytes.toString("base64")}` } }];
}

/** One file, while 20 other streams run. */
function fileAttack(name: string, bytes: () => Buffer): Attack {
  return attackOn(name, { upstream: answer, upstreamOptions: noFiles }, async (attacked) =>
    besideStreams(attacked, "up", fileOf(bytes())),
  );
}

async function besideStreams({ server, expect }: Attacked, model: string, content: unknown): Promise<string> {
  const others = Array.from({ length: streams }, () =>
    outcomeOf(fetch(`${server.url}/v1/chat/completions`, chat("steady", "Hi", { stream: true }))),
  );
  const peak = watchChildren(server.process.pid ?? 0);
  const begun = performance.now();
  const { status, text } = await outcomeOf(fetch(`${server.url}/v1/chat/completions`, chat(model, content)));
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const whole = (await Promise.all(others)).filter(({ text: all }) => all.endsWith("data: [DONE]\n\n")).length;
  expect(/^(?:200|4\d\d)$/.test(status), `The file was answered with ${status}: ${text.slice(0, 200)}`);
  expect(whole === streams, `${streams - whole} of ${streams} other streams were cut.`);
  const mebibytes = peak();
  expect(mebibytes < 3000, `A process had ${mebibytes} MiB.`);
  return `${status} after ${seconds} s; ${whole} of ${streams} other streams whole; largest child process ${mebibytes} MiB`;
}

/** Returns a function that ends watching, and says how much resident memory a process under this one had at most, in MiB. */
function watchChildren(server: number): () => number {
  let most = 0;
  const look = (pid: number): void => {
    try {
      for (const child of childrenOf(pid)) {
        most = Math.max(most, Math.round(memoryOf(child).peak));
        look(child);
      }
    } catch {
      // The process has ended meanwhile.
    }
  };
  const timer = setInterval(() => look(server), 50);
  return () => {
    clearInterval(timer);
    return most;
  };
}

const [alice, bob, carol] = [keyOf("alice"), keyOf("bob"), keyOf("carol")];

function image(bytes: Buffer, type: string): unknown {
  return [{ type: "image_url", image_url: { url: `data:image/${type};base64,${bytes.toString("base64")}` } }];
}

function imageAttack(name: string, type: string, bytes: () => Buffer): Attack {
  const models = (folder: string): readonly string[] => {
    const { model, mmproj } = writeRandomVision(folder, "llava");
    return [
      `{ kind: local, name: sees, path: ${JSON.stringify(model)}, mmproj: ${JSON.stringify(mmproj)}, gpu: "off", threads: 1 }`,
    ];
  };
  return attackOn(name, { models }, (attacked) => besideStreams(attacked, "sees", image(bytes(), type)));
}

/** What files and images of one client do to the others. Those of local models need libmtmd. */
export const attacks: readonly Attack[] = [
  fileAttack("a spreadsheet of 1.6 kB whose cells repeat one text", () => repeatedSharedText()),
  fileAttack("a PDF of 24 kB that is packed twice, 10 GB unpacked", () => twiceFlatePdf(10_240)),
  fileAttack("a ZIP64 .docx of 1.3 MB with a second directory, 1.2 GB unpacked", () => zip64Docx(1200)),
  attackOn(
    "six slow PDFs of one key, a page of another key",
    {
      upstream: answer,
      upstreamOptions: noFiles,
      config: `keys: ${JSON.stringify([alice.entry, bob.entry, carol.entry])}`,
      key: carol.key,
    },
    async ({ server, expect }) => {
      const send = (key: string, bytes: Buffer): Promise<string> =>
        outcomeOf(fetch(`${server.url}/v1/chat/completions`, withKey(key, chat("up", fileOf(bytes))))).then(
          ({ status }) => status,
        );
      const slow = slowPdf(600_000);
      let ended = 0;
      const ofAlice = Array.from({ length: 6 }, () => send(alice.key, slow).finally(() => ended++));
      const begun = performance.now();
      const status = await send(bob.key, pdf("Hello"));
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      const before = ended;
      expect(status === "200", `The page was answered with ${status}.`);
      expect(before < 3, `The page waited for ${before} of 6 slow files.`);
      await Promise.all(ofAlice);
      return `the page ${status} after ${seconds} s, after ${before} of 6 slow files, which took ${((performance.now() - begun) / 1000).toFixed(1)} s`;
    },
    true,
  ),
  ...(findMtmd(process.env["TRUEWIRE_LLAMA_LIBRARIES"]) === null
    ? []
    : [
        imageAttack("a PNG of 3.6 MB that claims 10 × 10 pixels", "png", () => inflatingPng(3500)),
        imageAttack("a progressive JPEG of 1.5 MB with 36,000 scans", "jpeg", () => manyScans(4000, 36_000)),
      ]),
];
