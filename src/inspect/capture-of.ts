import { writeRecording } from "../capture/recording.ts";
import type { InspectedRequest } from "./inspected-request.ts";

/**
 * The request and its answer as a line of a recording (`truewire record`). null: the request has not ended, was never answered, or was too
 * long to be kept completely.
 */
export function recordingOf({ method, path, outcome, status, request, response }: InspectedRequest): string | null {
  const { body } = request;
  const isWhole = body?.left_out === undefined && response.body.left_out === undefined;
  if (outcome === "open" || status === undefined || !isWhole) return null;
  return writeRecording({
    request: { method, path, ...(body && { body: body.text }) },
    response: {
      status,
      headers: response.headers,
      pieces: response.body.pieces.map(({ ms, text }) => ({ ms: Math.round(ms), text })),
      ...(outcome === "cancelled" && { brokeOff: true }),
    },
  });
}
