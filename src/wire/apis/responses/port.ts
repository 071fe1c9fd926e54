import type { ServedPort } from "../port-state.ts";
import { conversationRoutes } from "../conversations/routes.ts";
import { responsesErrorFormat } from "./errors.ts";
import { responseForms } from "./form.ts";
import { responsesRequestInSteps } from "./request.ts";
import { ResponseObject } from "./response-object.ts";
import { writeResponse } from "./response-writer.ts";
import { responsesSocket } from "./socket.ts";
import { responsesRoutes } from "./state/routes.ts";
import { readStoredRequest } from "./state/stored-request.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

/** `POST /v1/responses`. */
export const responsesPort: ServedPort = {
  name: "responses",
  path: "/responses",
  errorFormat: responsesErrorFormat,
  *readRequest(body, requestId, options) {
    const { responseOptions, ...read } = yield* responsesRequestInSteps(body, requestId, options);
    return {
      ...read,
      streamWriter: (context) => new ResponseStreamWriter(new ResponseObject(context, responseOptions, "stream")),
      writeResponse: (generation, context) => writeResponse(generation, context, responseOptions),
    };
  },
  state: { readRequest: readStoredRequest, routes: [...responsesRoutes, ...conversationRoutes] },
  socket: responsesSocket,
  streamHeaders: ({ name }) => responseForms[name].streamHeaders,
};
