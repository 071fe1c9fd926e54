import type { DetokenizeRequest, Tokenization, TokenizeRequest } from "../../core/engine.ts";
import { FailureError } from "../../core/failure.ts";
import { readText, readTokens, writeDetokenizeRequest, writeTokenizeRequest } from "../../apis/tokens/source.ts";
import { askWhole } from "./ask-whole.ts";
import type { AskContext } from "./ask-whole.ts";

/** Asks an upstream for tokens. Rejects with `FailureError`, 501 where it has no such path. */
export async function askTokens(
  request: TokenizeRequest,
  context: AskContext,
  signal: AbortSignal,
): Promise<Tokenization> {
  const body = writeTokenizeRequest(request, request.model);
  const tokens = readTokens(await askRoot("/tokenize", request.id, body, context, signal));
  // llama.cpp's server takes no conversations: it answers with no tokens at all, where every template writes some.
  if (tokens === undefined || (request.input.kind === "chat" && tokens.tokens.length === 0))
    throw cannotTell("/tokenize");
  return tokens;
}

/** Asks an upstream for the text of tokens. Rejects with `FailureError`, 501 where it has no such path. */
export async function askText(request: DetokenizeRequest, context: AskContext, signal: AbortSignal): Promise<string> {
  const body = writeDetokenizeRequest(request, request.model);
  const text = readText(await askRoot("/detokenize", request.id, body, context, signal));
  if (text === undefined) throw cannotTell("/detokenize");
  return text;
}

/** llama.cpp's server and vLLM have these paths beside `/v1`, not below it. */
async function askRoot(
  path: string,
  id: string,
  body: Readonly<Record<string, unknown>>,
  context: AskContext,
  signal: AbortSignal,
): Promise<unknown> {
  try {
    return await askWhole({ path, besideVersion: true, id, body }, context, signal);
  } catch (error) {
    if (error instanceof FailureError && [404, 405, 501].includes(error.failure.status)) throw cannotTell(path);
    throw error;
  }
}

function cannotTell(path: string): FailureError {
  return new FailureError({
    kind: "internal",
    status: 501,
    message: `The model's server has no ${path}, so its tokens are not known.`,
  });
}
