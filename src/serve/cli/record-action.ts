import { appendFileSync, closeSync, fstatSync, ftruncateSync, openSync } from "node:fs";
import { FailureError } from "../../wire/core/failure.ts";
import { withScheme } from "../config/target.ts";
import { restrictedOrigins } from "../server/origins.ts";
import { recordServer } from "../../judge/capture/record-server.ts";
import { writeRecording } from "../../judge/capture/recording.ts";
import { listenUntilSignal } from "./listen-until-signal.ts";

/** Records until a signal ends it. Throws an error of one sentence when it cannot start. */
export async function record(
  target: string,
  {
    output,
    corsOrigin,
    ...address
  }: {
    readonly output: string;
    readonly host: string;
    readonly port: string;
    readonly corsOrigin: readonly string[];
  },
): Promise<void> {
  const url = withScheme(target);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new Error(`${url} is not a base URL; expected one such as http://localhost:11434/v1`);
  }
  // Prompts and answers: only the user who records may read them.
  const file = openSync(output, "a", 0o600);
  const origins = restrictedOrigins({ allowed: corsOrigin, keysRequired: false, ownNames: [address.host] });
  const server = recordServer({
    target: url,
    refusal(header) {
      try {
        origins.headersFor({ header });
        return undefined;
      } catch (error) {
        if (error instanceof FailureError) return error.failure.message;
        throw error;
      }
    },
    // Written synchronously: the file is valid even if the process ends at any time.
    keep: (exchange) => appendWhole(file, `${writeRecording(exchange)}\n`),
    log: (line) => console.error(line),
  });
  const here = await listenUntilSignal(server, address, () => closeSync(file));
  console.log(`${here}/v1 passes everything on to ${url}, and records it in ${output}. Ctrl+C ends it.`);
}

/** All of the text or, on a full disk, nothing of it. Throws what the system says. */
function appendWhole(file: number, text: string): void {
  const status = fstatSync(file);
  try {
    appendFileSync(file, text);
  } catch (error) {
    if (status.isFile()) ftruncateSync(file, status.size);
    throw error;
  }
}
