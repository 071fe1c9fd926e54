import type { ServedPort } from "../port-state.ts";
import { responseForms } from "./form.ts";
import { ResponseFrame } from "./response-frame.ts";
import { responsesRequestInSteps } from "./read-request.ts";
import { writeResponse } from "./response-writer.ts";
import { responsesVoice } from "./responses-voice.ts";
import { responsesSocket } from "./socket.ts";
import { readKeptRequest } from "./state/kept-request.ts";
import { responsesRoutes } from "./state/routes.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

/** `POST /v1/responses`. */
export const responsesPort: ServedPort = {
  name: "responses",
  path: "/responses",
  voice: responsesVoice,
  *readRequest(body, requestId, options) {
    const { asked, ...read } = yield* responsesRequestInSteps(body, requestId, options);
    return {
      ...read,
      streamWriter: (context) => new ResponseStreamWriter(new ResponseFrame(context, asked, "stream")),
      writeResponse: (generation, context) => writeResponse(generation, context, asked),
    };
  },
  state: { readRequest: readKeptRequest, routes: responsesRoutes },
  socket: responsesSocket,
  streamHeaders: ({ name }) => responseForms[name].streamHeaders,
};
