import { judge } from "../../../../src/judge/check/rules/judge.ts";
import { legalResponseBody } from "../../legal/responses.ts";
import type { IllegalChange } from "../mutation.ts";
import { onEvents, onStreamText } from "./on-response.ts";

/** Rewrites the text of a body; its own profile is demanded. */
function onBodyText(rule: string, name: string, rewrite: (body: string) => string): IllegalChange {
  return {
    rule,
    name,
    make(seed) {
      const { exchange, profile } = legalResponseBody(seed);
      const { response } = exchange;
      const body = rewrite(response.body);
      if (response.status !== 200 || body === response.body) return undefined;
      return judge({ ...exchange, response: { ...response, body } }, profile.name).findings;
    },
  };
}

/** What is legal and not of the demanded profile. */
export const profileMutations: readonly IllegalChange[] = [
  onStreamText(
    "profile/response-members",
    "no truncation",
    (body) => body.replaceAll(/"truncation":"\w+",/g, ""),
    true,
  ),
  onStreamText("profile/response-members", "no moderation", (body) => body.replaceAll('"moderation":null,', ""), true),
  onBodyText("profile/response-members", "no billing", (body) => body.replace(/"billing": \{[^}]*\},\s*/, "")),
  onBodyText("profile/response-members", "no background", (body) => body.replace(/"background": ?false,\s*/, "")),
  onStreamText(
    "profile/response-order",
    "the number first",
    (body) =>
      body.replace(/data: \{"type":("[^"]*"),(.*),"sequence_number":(\d+)/, 'data: {"sequence_number":$3,"type":$1,$2'),
    true,
  ),
  onStreamText(
    "profile/response-order",
    "the model first",
    (body) => body.replace(/"object":"response",(.*?),"model":"m"/, '"model":"m","object":"response",$1'),
    true,
  ),
  onBodyText("profile/response-order", "the object first", (body) =>
    body.replace(/("id": ?"resp_\w+"),(\s*)("object": ?"response")/, "$3,$2$1"),
  ),
  onEvents(
    "profile/response-end",
    "the other profile's",
    (draft) => {
      draft.tail = draft.tail === "" ? "data: [DONE]\n\n" : "";
      return true;
    },
    true,
  ),
  onEvents(
    "profile/response-obfuscation",
    "the other way round",
    (draft) => {
      const has = draft.events.some((event) => "obfuscation" in event);
      if (draft.request) draft.request.stream_options = { include_obfuscation: !has };
      return draft.events.some(({ type }) => /(output_text|arguments)\.delta$/.test(String(type)));
    },
    true,
  ),
  onStreamText(
    "profile/response-numbers",
    "printed otherwise",
    (body) => body.replace(/"top_p":[\d.]+/, '"top_p":10e-1'),
    true,
  ),
  onBodyText("profile/response-numbers", "printed otherwise", (body) => body.replace(/("top_p": ?)[\d.]+/, "$110e-1")),
  onBodyText("profile/members", "the count first", (body) =>
    body.includes("response.input_tokens") ? '{"input_tokens":11,"object":"response.input_tokens"}' : body,
  ),
  onBodyText("profile/layout", "of other white space", (body) => JSON.stringify(JSON.parse(body), null, 3)),
  onBodyText("profile/layout", "a final line feed", (body) => `${body}\n`),
];
