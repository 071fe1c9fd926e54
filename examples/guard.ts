// A hook that keeps e-mail addresses from models: they are masked in requests, and in answers as they stream.
//   echo 'hook: ./examples/guard.ts' >> truewire.yaml && truewire serve --config truewire.yaml
import { defineHook, RequestError } from "truewire";
import type { Message } from "truewire";

/** Up to 64 characters before the @, as RFC 5321 has it, so that the search is linear. */
const address = /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g;
const mask = (text: string): string => text.replace(address, "[address]");

function masked(message: Message): Message {
  const { content } = message;
  if (typeof content === "string") return { ...message, content: mask(content) } as Message;
  const parts = content?.map((part) => {
    if (part.type === "text") return { ...part, text: mask(part.text) };
    return part.type === "tool-call" ? { ...part, arguments: mask(part.arguments) } : part;
  });
  return { ...message, content: parts ?? null } as Message;
}

export default defineHook({
  request(request, { key, headers }) {
    if (key === "guest" && (request.tools?.length ?? 0) > 0)
      throw new RequestError("Guests may not use tools.", { status: 403 });
    const model = headers["x-data"] === "personal" ? "private" : request.model;
    const { prompt } = request;
    // The same message is masked in the same way in every turn, so the prompt's prefix stays in the cache.
    if (prompt.kind === "chat")
      return { ...request, model, prompt: { ...prompt, messages: prompt.messages.map(masked) } };
    const prompts = prompt.prompts.map((text) => (typeof text === "string" ? mask(text) : text));
    return { ...request, model, prompt: { ...prompt, prompts } };
  },

  answer({ type, text, isEnd }) {
    if (type === "tool-call" || isEnd) return mask(text);
    // An address may go on in the next piece: hold back what may be the beginning of one.
    const end = text.length - (/[\w.+@-]{1,200}$/.exec(text.slice(-200))?.[0].length ?? 0);
    return { text: mask(text.slice(0, end)), rest: text.slice(end) };
  },
});
