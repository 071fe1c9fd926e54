import { defineProgram, RequestError } from "truewire";

/** What the page's tests talk to: the last message is a word that says how to answer, and its arguments. */
export default defineProgram(
  async function* ({ messages, options, responseSchema, signal }) {
    const last = messages.at(-1);
    if (last?.role === "tool") {
      yield `The tool said ${String(last.content)}.`;
      return;
    }
    const parts = Array.isArray(last?.content) ? last.content : [];
    const text = parts.length > 0 ? textOf(parts) : String(last?.content);
    const [word = "", ...rest] = text.split(" ");
    switch (word) {
      case "line":
      case "long": {
        // `long COUNT [A SECOND]`: words that tell their place, twelve a line; `line`: all in one.
        const [count = 0, perSecond = Infinity] = rest.map(Number);
        const begun = performance.now();
        for (let at = 0; at < count; at++) {
          yield at % 12 === 11 && word === "long" ? `w${at}\n` : `w${at} `;
          const due = begun + ((at + 1) * 1000) / perSecond;
          if (due - performance.now() > 1) await pause(due - performance.now(), signal);
          // Without a pause now and then, the worker would hear of nothing.
          else if (at % 200 === 0) await pause(0, signal);
        }
        yield { type: "usage", usage: { promptTokens: 3, completionTokens: count } };
        return;
      }
      case "think":
        yield { type: "reasoning", text: "Let me see: this is easy." };
        yield "Thought.";
        return;
      case "see":
        yield `I see ${parts.filter(({ type }) => type === "image_url").length} image.`;
        return;
      case "zero":
        yield "Zero tokens.";
        yield { type: "usage", usage: { promptTokens: 3, completionTokens: 0 } };
        return;
      case "fail":
        throw new RequestError("The talker will not.", { status: 422, param: "messages", code: "no_talk" });
      case "options": {
        // It would end the answer that quotes it.
        const { stop: _stop, ...others } = options;
        yield JSON.stringify({ ...others, roles: messages.map(({ role }) => role), schema: responseSchema?.name });
        return;
      }
      case "call":
        yield { type: "tool-call", name: rest[0] ?? "", arguments: { n: 7 } };
        return;
      case "odds": {
        const top = [{ token: " ten", logprob: Math.log(0.5) }];
        for (const tokens of [["One"], [" two"], ["", " three"]])
          yield {
            type: "text",
            text: tokens.join(""),
            logprobs: tokens.map((token) => ({ token, logprob: Math.log(0.25), top })),
          };
        return;
      }
      default:
        yield `You said: ${text}`;
    }
  },
  ["logprobs"],
);

function textOf(parts) {
  return parts.map((part) => ("text" in part ? String(part.text) : "")).join("");
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new Error("stopped"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop);
  });
}
