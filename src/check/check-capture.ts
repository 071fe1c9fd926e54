import type { Judgement } from "./report/report.ts";
import type { Exchange } from "./rules/exchange.ts";
import { judge } from "./rules/judge.ts";
import type { ProfileName } from "./rules/profile/profile-rule.ts";
import { isObject } from "../generation/json.ts";

/**
 * Judges the body of an answer that was captured elsewhere, with its request where that was kept; `demanded`: the profile that it must
 * have.
 */
export function judgeCapture(
  name: string,
  body: string,
  request?: Record<string, unknown>,
  demanded?: ProfileName | "openai",
): Judgement {
  const exchange: Exchange = {
    endpoint: endpointOf(body, request),
    request: { method: "POST", path: "", ...(request && { body: request }) },
    response: { status: statusOf(body), headers: null, body, complete: true },
  };
  const { findings, shown } = judge(exchange, demanded);
  return { id: name, about: "a capture", exchange, findings, shown };
}

function endpointOf(body: string, request: Record<string, unknown> | undefined): Exchange["endpoint"] {
  if (/"object"\s*:\s*"response"|"type"\s*:\s*"response\.\w/.test(body)) return "responses";
  if (request) return "prompt" in request ? "completions" : "chat";
  if (/"object"\s*:\s*"text_completion"/.test(body)) return "completions";
  return /"object"\s*:\s*"list"/.test(body) ? "models" : "chat";
}

/** A body alone has no status; one that is nothing but an error was not sent with 200. */
function statusOf(body: string): number {
  try {
    const value: unknown = JSON.parse(body);
    if (!isObject(value) || value.object === "response") return 200;
    return "error" in value ? 400 : 200;
  } catch {
    return 200;
  }
}
