import type {
  FinishReason,
  GenerationEvent,
  TokenAlternative,
  TokenLogprob,
  Usage,
} from "../../src/wire/core/events.ts";
import type { ChoicesContext } from "../../src/wire/apis/choices-answer.ts";
import type { Profile } from "../../src/wire/apis/profile.ts";

/**
 * The obvious encoder of a chat stream: an object a chunk, JSON.stringify, and no cleverness; the oracle of the writer. Only the
 * numbers of logprobs are put in as text. It knows the profiles from recordings, not from the code.
 */
export function obviousStream(
  events: readonly GenerationEvent[],
  { profile, requested: asked, id, created, model }: ChoicesContext,
): string {
  const isLean = profile.name === "lean";
  const showsReasoning = asked.includeReasoning ?? isLean;
  const obfuscates = asked.includeObfuscation ?? !isLean;
  let stream = "";
  const opened = new Set<number>();
  const several = new Set<number>();
  const held = new Map<number, TokenLogprob[]>();
  let usage: Usage | undefined;

  const send = (choices: unknown[], shownUsage: unknown, usageFirst = false): void => {
    const tier = isLean ? {} : { service_tier: "default" };
    const start = { id, object: "chat.completion.chunk", created, model, ...tier, system_fingerprint: null };
    const usageMember = asked.includeUsage ? { usage: shownUsage } : {};
    const chunk = usageFirst ? { ...start, ...usageMember, choices } : { ...start, choices, ...usageMember };
    let json = JSON.stringify(chunk).replaceAll(/"number:([^"]*)"/g, "$1");
    if (obfuscates) {
      const length = [...json].length;
      json = `${json.slice(0, -1)},"obfuscation":"${"0".repeat((160_000_000 - length) % 16)}"}`;
    }
    stream += `data: ${json}\n\n`;
  };
  const sendDelta = (
    choice: number,
    delta: unknown,
    logprobs: unknown = null,
    finish: string | null = null,
    more = {},
  ): void => {
    const usageFirst =
      !isLean &&
      several.has(choice) &&
      typeof delta === "object" &&
      delta !== null &&
      ("tool_calls" in delta || "role" in delta);
    send([{ index: choice, delta, logprobs, finish_reason: finish, ...more }], null, usageFirst);
  };
  const open = (choice: number, rest: object, logprobs: unknown = null): void => {
    if (opened.has(choice)) return;
    opened.add(choice);
    sendDelta(
      choice,
      isLean ? { role: "assistant" } : { role: "assistant", ...rest },
      isLean || !asked.logprobs ? null : logprobs,
    );
  };
  const openAsText = (choice: number): void =>
    open(choice, { content: "", refusal: null }, { content: [], refusal: null });
  const openAsRefusal = (choice: number): void =>
    open(choice, { content: null, refusal: "" }, { content: null, refusal: [] });

  for (const event of events) {
    switch (event.type) {
      case "start":
        if (event.announced === "tool-calls") several.add(event.choice);
        if (event.announced === "tool-calls") open(event.choice, { content: null });
        if (event.announced === "refusal") openAsRefusal(event.choice);
        if (isLean) open(event.choice, {});
        break;
      case "text-delta": {
        const tokens = [...(held.get(event.choice) ?? []), ...(event.logprobs ?? [])];
        const hasTokens = event.logprobs !== undefined || held.has(event.choice);
        if (event.text === "") {
          if (hasTokens && tokens.length > 0) held.set(event.choice, tokens);
          break;
        }
        held.delete(event.choice);
        openAsText(event.choice);
        sendDelta(
          event.choice,
          { content: event.text },
          asked.logprobs && hasTokens
            ? { content: tokens.map((token) => obviousToken(token, profile)), refusal: null }
            : null,
        );
        break;
      }
      case "reasoning-delta":
        if (event.text === "" || !showsReasoning) break;
        openAsText(event.choice);
        sendDelta(event.choice, { reasoning_content: event.text });
        break;
      case "refusal-delta":
        if (event.text === "") break;
        openAsRefusal(event.choice);
        sendDelta(event.choice, { refusal: event.text });
        break;
      case "tool-call-start": {
        const { choice, index, id: callId, name } = event;
        const calls = { tool_calls: [{ index, id: callId, type: "function", function: { name, arguments: "" } }] };
        if (opened.has(choice)) sendDelta(choice, calls);
        else open(choice, { content: null, ...calls, refusal: null });
        break;
      }
      case "tool-call-delta":
        if (event.arguments === "") break;
        sendDelta(event.choice, { tool_calls: [{ index: event.index, function: { arguments: event.arguments } }] });
        break;
      case "finish": {
        openAsText(event.choice);
        const rest = held.get(event.choice);
        if (rest)
          sendDelta(
            event.choice,
            { content: "" },
            asked.logprobs ? { content: rest.map((token) => obviousToken(token, profile)), refusal: null } : null,
          );
        const stop = asked.includeStopString && event.stop !== undefined ? { stop_str: event.stop } : {};
        sendDelta(event.choice, {}, null, obviousReason(event.reason, !isLean && asked.namedToolChoice), stop);
        break;
      }
      case "usage":
        ({ usage } = event);
        break;
      case "end":
        if (usage && asked.includeUsage) send([], obviousUsage(usage, isLean));
        stream += "data: [DONE]\n\n";
        break;
      default:
    }
  }
  return stream;
}

function obviousReason(reason: FinishReason, named: boolean): string {
  if (reason === "tool-calls") return named ? "stop" : "tool_calls";
  return reason;
}

function obviousUsage(usage: Usage, isLean: boolean): unknown {
  const { promptTokens, completionTokens, promptDetails, completionDetails } = usage;
  const counts = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  const reasoning = completionDetails?.["reasoning_tokens"] ?? 0;
  if (isLean) {
    return {
      ...counts,
      ...(promptDetails && { prompt_tokens_details: promptDetails }),
      ...(completionDetails && { completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0 } }),
    };
  }
  const predictions = { accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 };
  return {
    ...counts,
    prompt_tokens_details: { cached_tokens: promptDetails?.["cached_tokens"] ?? 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning, audio_tokens: 0, ...predictions },
  };
}

function obviousToken({ top, ...token }: TokenLogprob, profile: Profile): unknown {
  return {
    ...obviousAlternative(token, profile),
    top_logprobs: top.map((other) => obviousAlternative(other, profile)),
  };
}

function obviousAlternative({ token, logprob, bytes }: TokenAlternative, profile: Profile): Record<string, unknown> {
  if (logprob === null) return { token, logprob, bytes };
  const finite = logprob === -Infinity ? -9999 : logprob;
  return { token, logprob: `number:${profile.name === "lean" ? JSON.stringify(finite) : rustFloat(finite)}`, bytes };
}

/** Shortest digits, an exponent below 1e-5, a fraction always: written from the description, not from the code. */
function rustFloat(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits = "", exponent = "0"] = value.toExponential().split("e");
  if (Number(exponent) < -5) return `${digits}e${Number(exponent)}`;
  const text = Number(exponent) === -5 || Number(exponent) > -5 ? decimalText(digits, Number(exponent)) : "";
  return text.includes(".") ? text : `${text}.0`;
}

function decimalText(digits: string, exponent: number): string {
  const sign = digits.startsWith("-") ? "-" : "";
  const bare = digits.replace("-", "").replace(".", "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${bare}`;
  if (bare.length <= exponent + 1) return sign + bare.padEnd(exponent + 1, "0");
  return `${sign}${bare.slice(0, exponent + 1)}.${bare.slice(exponent + 1)}`;
}
