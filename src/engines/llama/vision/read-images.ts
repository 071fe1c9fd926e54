import { FailureError, invalidImage } from "../../../wire/core/failure.ts";
import type { ContentPart, ImagePart, Message } from "../../../wire/core/message.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";

/** The beginnings of data URLs of files that libmtmd reads: PNG, JPEG, GIF, BMP, in base64. */
const readable = /^data:[^,]{0,100};base64,(?:iVBORw0KGgo|\/9j\/|R0lGOD|Qk)/i;
/** How long reading all images of a request may take, in milliseconds. */
const maxMs = 60_000;

/** Images of one request at most. OpenAI takes 500 (platform.openai.com/docs/guides/images-vision), Anthropic 100. */
export const maxImages = 100;

/**
 * Returns the request with data URLs of PNG, JPEG, GIF or BMP files in place of other images, which `read` downloads or converts. Rejects with
 * `FailureError`, which names the image's place in the client's request.
 */
export async function readImages(
  request: GenerationRequest,
  read: (url: string) => Promise<string>,
): Promise<GenerationRequest> {
  const { prompt } = request;
  if (prompt.kind !== "chat") return request;
  const deadline = performance.now() + maxMs;
  let count = 0;
  const imageOf = async (part: ImagePart, place: string): Promise<ImagePart> => {
    if (++count > maxImages || readable.test(part.url.slice(0, 200))) return part;
    try {
      if (performance.now() > deadline) throw new Error(`reading all images took longer than ${maxMs / 1000} seconds`);
      return { ...part, url: await read(part.url) };
    } catch (cause) {
      if (cause instanceof FailureError) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      const problem = /^data:/i.test(part.url)
        ? ({ why: "format" } as const)
        : ({ why: "url", url: part.url.slice(0, 1000) } as const);
      const failure = invalidImage(problem, `The image cannot be read: ${reason}.`, place);
      failure.cause = cause;
      throw failure;
    }
  };
  const messages: Message[] = [];
  // One after another: only one of them is in memory twice.
  for (const [index, message] of prompt.messages.entries()) {
    const { content, path = `messages[${index}]` } = message;
    if (typeof content === "string" || content === null || !content.some(({ type }) => type === "image")) {
      messages.push(message);
      continue;
    }
    const parts: unknown[] = [];
    for (const [at, part] of content.entries())
      parts.push(part.type === "image" ? await imageOf(part, `${path}.content[${at}]`) : part);
    messages.push({ ...message, content: parts as ContentPart[] } as Message);
  }
  return { ...request, prompt: { ...prompt, messages } };
}

/** Whether `readImages` would change the request. */
export function hasForeignImages({ prompt }: GenerationRequest): boolean {
  if (prompt.kind !== "chat") return false;
  return prompt.messages.some(
    ({ content }) =>
      Array.isArray(content) &&
      content.some((part: ContentPart) => part.type === "image" && !readable.test(part.url.slice(0, 200))),
  );
}
