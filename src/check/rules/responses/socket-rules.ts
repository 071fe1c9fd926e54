import { isObject } from "../../../core/json.ts";
import { objectOf } from "../body/body-place.ts";
import { atFrame, shown } from "../place.ts";
import type { BodyRule, StreamRule } from "../rule.ts";
import { parsedJson } from "../view.ts";

/** The messages of an answer by WebSocket; what its events say is judged as that of a stream. */
export const socketRules: readonly StreamRule[] = [
  {
    id: "socket/json",
    severity: "error",
    concern: "the stream cannot be read",
    says: "Every message of a WebSocket is one event: a JSON object as text. There is no [DONE].",
    source: "OpenAI's documentation: WebSocket mode; compliance tests of Open Responses",
    breaks: ["official SDKs: responses.connect()", "Codex (it passes over the message)"],
    judges: "stream",
    endpoints: ["response-socket"],
    *judge(view) {
      for (const frame of view.frames) {
        const isEvent = frame.data !== null && isObject(parsedJson(frame.data));
        if (!isEvent) yield atFrame(frame, frame.data === null ? "a message that is no text" : shown(frame.data));
      }
    },
  },
];

/** The message that refuses a request by WebSocket. */
export const socketErrorRules: readonly BodyRule[] = [
  {
    id: "socket/error",
    severity: "error",
    concern: "errors look like answers",
    says: 'A request by WebSocket is refused with {"type": "error", "status": 400, "error": {"code", "message", "param"}}: the status that HTTP would have.',
    source:
      "OpenAI's documentation: WebSocket mode; compliance tests of Open Responses; source code of Codex CLI: WrappedWebsocketErrorEvent",
    breaks: ["Codex (it takes the error for an event that it does not know, and waits)"],
    judges: "body",
    shown: ({ exchange, value }) => exchange.endpoint === "response-socket-error" && isObject(value),
    *judge(view) {
      const { type, status, error } = objectOf(view);
      const whole = { start: 0, end: Math.min(80, view.exchange.response.body.length) };
      if (type !== "error") yield { ...whole, found: `type is ${shown(type)}` };
      if (!(Number.isInteger(status) && (status as number) >= 400 && (status as number) < 600))
        yield { ...whole, found: `status is ${shown(status)}` };
      const { message, code, param } = isObject(error) ? error : {};
      if (typeof message !== "string" || message === "") yield { ...whole, found: `message is ${shown(message)}` };
      for (const [name, value] of Object.entries({ code, param }))
        if (value !== undefined && value !== null && typeof value !== "string")
          yield { ...whole, found: `${name} is ${shown(value)}` };
    },
  },
];
