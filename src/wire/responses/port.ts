import type { Port } from "../port.ts";
import { unbufferedStream } from "../stream-headers.ts";
import { ResponseFrame } from "./response-frame.ts";
import { readResponsesRequest } from "./read-request.ts";
import { writeResponse } from "./response-writer.ts";
import { responsesVoice } from "./responses-voice.ts";
import { ResponseStreamWriter } from "./stream-writer.ts";

/** `POST /v1/responses`. */
export const responsesPort: Port = {
  name: "responses",
  path: "/responses",
  voice: responsesVoice,
  readRequest(body, requestId, options) {
    const { request, asked, warnings } = readResponsesRequest(body, requestId, options);
    return {
      request,
      warnings,
      streamWriter: (context) => new ResponseStreamWriter(new ResponseFrame(context, asked, "stream")),
      writeResponse: (generation, context) => writeResponse(generation, context, asked),
    };
  },
  streamHeaders: ({ name }) => (name === "lean" ? unbufferedStream : exactHeaders),
};

/** As OpenAI sends them (recordings of 2026). */
const exactHeaders = { "content-type": "text/event-stream; charset=utf-8" };
