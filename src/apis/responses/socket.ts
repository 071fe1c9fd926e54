import type { GenerationFailure } from "../../core/events.ts";
import { invalidRequest } from "../../core/failure.ts";
import { errorObject } from "../error-body.ts";
import type { PortSocket } from "../port-state.ts";
import { anyObject } from "../request/shapes.ts";
import { parsed } from "./request-schema.ts";

/**
 * `wss://…/v1/responses`. A client sends `{"type": "response.create", …}` with the members of a request; `stream` has no effect.
 * Source: OpenAI's WebSocket mode, and the compliance tests of Open Responses.
 */
export const responsesSocket: PortSocket = {
  readMessage(message) {
    const { type, stream_options: options, ...body } = parsed(anyObject(), message, "message");
    if (type !== "response.create") {
      throw invalidRequest(
        `Unknown message type ${JSON.stringify(type)}: expected 'response.create'.`,
        "type",
        "invalid_value",
      );
    }
    if (body["background"] === true) {
      const message = "Unsupported parameter: 'background' is not supported on a WebSocket connection.";
      throw invalidRequest(message, "background", "unsupported_parameter");
    }
    return { ...body, stream: true, ...(options !== undefined && { stream_options: options }) };
  },
  writeFailure(status, body) {
    const { error } = JSON.parse(body) as { readonly error: unknown };
    return JSON.stringify({ type: "error", status, error });
  },
  busy: bodyOf({
    kind: "invalid-request",
    message: "Another response is in progress on this connection. Send the next request when it is complete.",
    status: 400,
    param: null,
    code: "response_in_progress",
  }),
  tooOld: bodyOf({
    kind: "invalid-request",
    message: "This connection has lasted as long as one may. Open a new one.",
    status: 400,
    param: null,
    code: "websocket_connection_limit_reached",
  }),
};

function bodyOf(failure: GenerationFailure): string {
  return JSON.stringify({ error: errorObject(failure) });
}
