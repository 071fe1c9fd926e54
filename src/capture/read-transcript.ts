import type { CapturedExchange } from "./captured-exchange.ts";

/** curl's progress meter, where both of its outputs go into one file: the same line many times, with a line end after the last. */
const progress = /\r *\d[ \d.kMG]*(?: +[-\d:]{8}){3} +[\d.kMG]+(?:\n(?=\* ))?/g;

/**
 * What `curl -v` shows on a terminal: lines of its own with `*`, the request's head with `>`, the answer's head with `<`, and the body
 * as it is. The request's body is not shown, so any will do.
 */
export function readTranscript(text: string, from: string): CapturedExchange {
  let request: CapturedExchange["request"] | undefined;
  let status = 0;
  const headers: [string, string][] = [];
  const body: string[] = [];
  for (const line of text.replaceAll(progress, "").split("\n")) {
    const said = line.replace(/\r$/, "");
    const asked = /^> ([A-Z]+) (\S+) HTTP\//.exec(said);
    const answered = /^< HTTP\/\S+ (\d+)/.exec(said);
    const header = /^< ([^:\s]+):\s*(.*)$/.exec(said);
    if (asked) request = { method: asked[1] ?? "", path: asked[2] ?? "" };
    else if (answered) {
      // An interim answer, such as 100, is followed by the real one.
      status = Number(answered[1]);
      headers.length = 0;
    } else if (header) headers.push([header[1] ?? "", header[2] ?? ""]);
    else if (status !== 0 && !/^([*<>]( |$)|[{}] \[\d+ bytes data\]$)/.test(said)) body.push(line);
  }
  if (!request || status === 0)
    throw new Error(`${from}: expected what curl -v shows, with lines "> POST /…" and "< HTTP/…"`);
  const whole = body.join("\n");
  return { from, request, response: { status, headers, pieces: whole === "" ? [] : [{ ms: 0, text: whole }] } };
}
