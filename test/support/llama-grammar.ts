import { getLlama, LlamaGrammar, LlamaLogLevel, type Llama } from "node-llama-cpp";

let llama: Promise<Llama> | undefined;

/**
 * llama.cpp's own opinion of a grammar: parses it (throws where it is refused) and tells which texts are in it. node-llama-cpp has the
 * second as an internal function; a version without it fails here, loudly.
 */
export async function llamaGrammar(gbnf: string): Promise<{ accepts(text: string): boolean }> {
  llama ??= getLlama({ gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.error });
  const grammar = new LlamaGrammar(await llama, { grammar: gbnf }) as LlamaGrammar & {
    _testText(text: string): boolean;
  };
  return { accepts: (text) => grammar._testText(text) };
}
