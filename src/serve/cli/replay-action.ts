import { readFile } from "node:fs/promises";
import { ExchangeFinder } from "../../judge/capture/exchange-finder.ts";
import { readCaptures } from "../../judge/capture/read-captures.ts";
import { replayServer } from "../../judge/capture/replay-server.ts";
import { listenUntilSignal } from "./listen-until-signal.ts";

/** Replays until a signal ends it. Throws an error of one sentence when it cannot start. */
export async function replay(
  files: readonly string[],
  { speed, ...address }: { readonly speed: string; readonly host: string; readonly port: string },
): Promise<void> {
  const factor = speed === "max" ? Infinity : Number(speed);
  if (!(factor > 0)) throw new Error(`--speed must be a number above 0, or max, not ${speed}`);
  const captures = await Promise.all(files.map(async (file) => readCaptures(await textOf(file), file)));
  const all = captures.flat();
  const finder = new ExchangeFinder(all);
  const server = replayServer({ finder, speed: factor, log: (line) => console.error(line) });
  const here = await listenUntilSignal(server, address);
  console.log(
    `${here}/v1 answers as ${all.length === 1 ? "1 capture does" : `${all.length} captures do`}. Ctrl+C ends it.`,
  );
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === "ENOENT" ? "there is no such file" : `cannot be read (${cause.code ?? cause.message})`;
    throw new Error(`${file}: ${why}; expected a recording of truewire record, a HAR file or a captured answer.`, {
      cause,
    });
  });
}
