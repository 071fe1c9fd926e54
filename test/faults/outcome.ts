/**
 * What a client saw, in the words of docs/faults.md: status and code, and for a stream what came and how it ended. `onPiece` is called
 * with each piece of the answer.
 */
export async function outcome(asking: Promise<Response>, onPiece: () => void = () => {}): Promise<string> {
  let response: Response;
  try {
    response = await asking;
  } catch {
    return "no connection";
  }
  const { text, isWhole } = await readAll(response, onPiece);
  if (!response.ok) return refusal(response, text);
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream"))
    return isWhole ? "200" : "200, and the connection ends";
  const parts = ["200"];
  if (/"content":"[^"]/.test(text)) parts.push("text");
  if (/"error":\{/.test(text)) parts.push("an error");
  const [, finish] = /"finish_reason":"(\w+)"/.exec(text) ?? [];
  if (finish !== undefined) parts.push(`\`${finish}\``);
  if (text.endsWith("data: [DONE]\n\n")) parts.push("`[DONE]`");
  if (!isWhole) parts.push("and the connection ends");
  return parts.join(", ");
}

function refusal({ status, headers }: Response, text: string): string {
  const { error } = JSON.parse(text) as { readonly error: { readonly code: string | null } };
  return `${status}${error.code === null ? "" : ` \`${error.code}\``}${headers.has("retry-after") ? " with `Retry-After`" : ""}`;
}

async function readAll(
  response: Response,
  onPiece: () => void,
): Promise<{ readonly text: string; readonly isWhole: boolean }> {
  let text = "";
  try {
    for await (const piece of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      text += piece;
      onPiece();
    }
    return { text, isWhole: true };
  } catch {
    return { text, isWhole: false };
  }
}
