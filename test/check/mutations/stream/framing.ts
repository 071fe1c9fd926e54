import { onText } from "./on-stream.ts";
import type { StreamMutation } from "./on-stream.ts";
import { between } from "../../random.ts";

export const framingMutations: readonly StreamMutation[] = [
  onText("sse/json", "an event is cut in the middle", (body, random) => {
    const at = body.indexOf('"choices"', between(0, Math.floor(body.length / 3), random));
    return at < 0 ? undefined : `${body.slice(0, at)}\n\n${body.slice(at)}`;
  }),
  onText("sse/json", "NaN for a number", (body) => body.replace(/"created":\d+/, '"created":NaN')),
  onText("sse/json", "two chunks in one event", (body) => body.replace("\n\ndata: {", "{")),
  onText("sse/json", "an event whose data is empty", (body) => `data: \n\n${body}`),
  onText("sse/field", "a chunk without data:", (body) => body.replace("data: {", "{")),
  onText("sse/field", "an unknown field", (body) => `content: {}\n\n${body}`),
  onText("sse/one-data-line", "a chunk over two data lines", (body) =>
    body.replace(',"choices"', ',\ndata: "choices"'),
  ),
  onText("sse/event-name", "named events", (body) => body.replaceAll("data: {", "event: message\ndata: {")),
  onText("sse/id-retry", "an id line", (body) => `id: 1\n${body}`),
  onText("sse/id-retry", "a retry line", (body) => `retry: 3000\n${body}`),
  onText("sse/crlf", "CRLF", (body) => body.replaceAll("\n", "\r\n")),
  onText("sse/space", "no space after data:", (body) => body.replace("data: {", "data:{")),
  onText("sse/space", "two spaces after data:", (body) => body.replace("data: {", "data:  {")),
  onText("sse/blank-line", "no blank line at the end", (body) => body.replace(/\n\n$/, "\n")),
  onText("sse/bom", "a byte order mark", (body) => `\uFEFF${body}`),
  onText("sse/compact", "spaces between tokens", (body) => body.replace('","object":"', '", "object": "')),
  onText("sse/raw-unicode", "escaped letters", (body) => body.replace('"model":"m"', '"model":"\\u006d"')),
  ...["\\ud83d", "\\uDE00", "\\\\\\ud83d", "\\ude00\\ud83d", "\ud83d"].map((half) =>
    onText("text/surrogates", `${JSON.stringify(half)} in the name of the model`, (body) =>
      body.replaceAll('"model":"m"', `"model":"${half}"`),
    ),
  ),
  onText("end/done", "no [DONE]", (body) =>
    body.includes('\ndata: {"error"') ? undefined : body.replace("data: [DONE]\n\n", ""),
  ),
  onText("end/done", "cut somewhere", (body, random) => {
    const error = body.indexOf('data: {"error"');
    return body.slice(0, between(7, error > 0 ? error : body.indexOf("data: [DONE]"), random));
  }),
  onText("end/done-after-error", "no [DONE]", (body) =>
    body.includes('\ndata: {"error"') ? body.replace("data: [DONE]\n\n", "") : undefined,
  ),
  onText("end/done-last", "[DONE] twice", (body) => `${body}data: [DONE]\n\n`),
  onText("end/done-last", "a chunk after [DONE]", (body) => `${body}${body.slice(0, body.indexOf("\n\n") + 2)}`),
  onText("end/done-exact", "[done]", (body) => body.replace("[DONE]", "[done]")),
  onText("end/done-exact", '"[DONE]"', (body) => body.replace("[DONE]", '"[DONE]"')),
  {
    rule: "end/complete",
    name: "a cut connection",
    apply(draft) {
      draft.complete = false;
      return true;
    },
  },
  {
    rule: "headers/event-stream",
    name: "another content type",
    apply(draft) {
      if (draft.headers) draft.headers["content-type"] = "application/json";
      return draft.headers !== null;
    },
  },
  {
    rule: "headers/stream-request-id",
    name: "no x-request-id",
    apply(draft) {
      if (draft.headers) delete draft.headers["x-request-id"];
      return draft.headers !== null;
    },
  },
  {
    rule: "headers/stream-length",
    name: "a content-length",
    apply(draft) {
      if (draft.headers) draft.headers["content-length"] = "1000";
      return draft.headers !== null;
    },
  },
];
