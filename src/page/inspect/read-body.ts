import { ports } from "../../wire/apis/ports.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { runSync } from "../../wire/core/steps.ts";
import type { Header } from "../../judge/inspect/inspected-request.ts";
import type { ParsedRequest } from "./readable-request.ts";

/** A request that the server did not parse: it was refused before, or asked for something else than an answer. */
export interface UnparsedRequest {
  readonly id: string;
  readonly path: string;
  readonly headers: readonly Header[];
  /** JSON, as a text: a worker is given it faster than as objects. */
  readonly body: string;
}

/** Reads a request as the API of its path does. undefined: the API refuses it, or the path has no API that generates. */
export function readBody({ id, path, headers, body: text }: UnparsedRequest): ParsedRequest | undefined {
  const body: unknown = JSON.parse(text);
  const fits = (end: string): boolean => path.endsWith(end);
  // `/chat/completions` ends like `/completions`.
  const port = ports
    .filter((one) => fits(one.path) || (one.tokenCounter && fits(one.tokenCounter.path)))
    .toSorted((a, b) => b.path.length - a.path.length)[0];
  if (!port) return undefined;
  const header = (name: string): string | undefined =>
    headers.find(([other]) => other.toLowerCase() === name.toLowerCase())?.[1];
  const options = { forwards: true, header };
  try {
    const { request } =
      port.tokenCounter && fits(port.tokenCounter.path)
        ? runSync(port.tokenCounter.readRequest(body, id, options))
        : runSync(port.readRequest(body, id, options));
    const { passthrough: _, ...own } = request;
    return own;
  } catch (error) {
    if (error instanceof FailureError) return undefined;
    throw error;
  }
}
