import type { CapturedExchange, CapturedPiece } from "./captured-exchange.ts";

/** What says that a line is one of ours, and how it is to be read. */
const version = 1;

/** One line of a recording, without the line feed. */
export function writeRecording({ request, response }: Omit<CapturedExchange, "from">): string {
  return JSON.stringify({ truewire: version, request, response });
}

/** The exchange of a line that `writeRecording` made. Throws an Error of one sentence. */
export function readRecording(line: string, from: string): CapturedExchange {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new Error(`${from}: not JSON; expected a line that truewire record wrote`, { cause });
  }
  const { truewire, request, response } = (value ?? {}) as Partial<CapturedExchange> & { truewire?: unknown };
  if (truewire !== version || !isRequest(request) || !isResponse(response)) {
    throw new Error(
      `${from}: expected {"truewire":${version},"request":{…},"response":{…}}, as truewire record writes it`,
    );
  }
  return { from, request, response };
}

function isRequest(value: unknown): value is CapturedExchange["request"] {
  const { method, path, body } = (value ?? {}) as Record<string, unknown>;
  return typeof method === "string" && typeof path === "string" && (body === undefined || typeof body === "string");
}

function isResponse(value: unknown): value is CapturedExchange["response"] {
  const { status, headers, pieces } = (value ?? {}) as Record<string, unknown>;
  return (
    Number.isInteger(status) &&
    Array.isArray(headers) &&
    headers.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every((one) => typeof one === "string")) &&
    Array.isArray(pieces) &&
    pieces.every(isPiece)
  );
}

function isPiece(value: unknown): value is CapturedPiece {
  const { ms, text, base64 } = (value ?? {}) as Record<string, unknown>;
  return typeof ms === "number" && (typeof text === "string") !== (typeof base64 === "string");
}
