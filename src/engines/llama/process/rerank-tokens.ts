import type { PromptInput } from "../preparing/prepared-request.ts";
import { inputTooLong, type InputLimits } from "./embedding-tokens.ts";
import type { Steps } from "./round-share.ts";
import { tokenizePrompt, type Tokenizer } from "./tokenize-prompt.ts";

/**
 * What a reranker reads of a query and each document, as tokens; `texts`: the query, then the documents. As llama.cpp's server has it
 * (its `format_prompt_rerank`): the file's own template for that, else [BOS] query [EOS] [SEP] document [EOS], as far as the
 * tokenizer has and adds them. Control tokens are only those of the template: the query and the documents are texts.
 *
 * Throws FailureError 400 for a document that is too long together with the query.
 */
export function* rerankTokens(
  tokenizer: Tokenizer,
  texts: readonly PromptInput[],
  limits: InputLimits,
): Steps<number[][]> {
  const [query = "", ...documents] = texts.map(textOf);
  const template = tokenizer.model.rerankTemplate;
  const pairs: number[][] = [];
  const pairOf = template === null ? yield* plainPairs(tokenizer, query) : templatePairs(tokenizer, template, query);
  for (const [at, document] of documents.entries()) {
    const what = `documents[${at}] with the query`;
    const fewest = Math.ceil((query.length + document.length) / limits.longestToken);
    if (fewest > limits.longest)
      throw inputTooLong(`more than ${fewest}`, fewest, limits.longest, `documents[${at}]`, what);
    const tokens = yield* pairOf(document);
    if (tokens.length > limits.longest)
      throw inputTooLong(`${tokens.length}`, tokens.length, limits.longest, `documents[${at}]`, what);
    pairs.push(tokens);
  }
  return pairs;
}

function* plainPairs(tokenizer: Tokenizer, query: string): Steps<(document: string) => Steps<number[]>> {
  const { addsBos, addsEos, addsSep, tokens } = tokenizer.model;
  const bos = addsBos && tokens.bos !== null ? [tokens.bos] : [];
  const end = tokens.eos ?? tokens.sep;
  const eos = addsEos && end !== null ? [end] : [];
  const sep = addsSep && tokens.sep !== null ? [tokens.sep] : [];
  const start = [...bos, ...(yield* tokensOf(tokenizer, [{ text: query, special: false }])), ...eos, ...sep];
  return function* (document) {
    return [...start, ...(yield* tokensOf(tokenizer, [{ text: document, special: false }])), ...eos];
  };
}

function templatePairs(tokenizer: Tokenizer, template: string, query: string): (document: string) => Steps<number[]> {
  const { vocabulary } = tokenizer;
  const controls = [...vocabulary.controlTexts(), ...vocabulary.userDefinedTexts()];
  const parts = template.split(/(\{query\}|\{document\})/);
  return (document) => {
    const values: Readonly<Record<string, string>> = { "{query}": query, "{document}": document };
    const spans: { text: string; special: boolean }[] = [];
    for (const part of parts) {
      const value = values[part];
      const text = value ?? part;
      const special = value === undefined || !controls.some((control) => text.includes(control));
      const last = spans.at(-1);
      // Cut where that is needed only: tokens reach over from the template into a text.
      if (last && last.special && special) last.text += text;
      else spans.push({ text, special });
    }
    return tokensOf(tokenizer, spans);
  };
}

function tokensOf(
  tokenizer: Tokenizer,
  spans: readonly { readonly text: string; readonly special: boolean }[],
): Steps<number[]> {
  return tokenizePrompt(tokenizer, { type: "spans", spans, bos: false, addSpecial: false });
}

function textOf(input: PromptInput): string {
  return input.type === "spans" ? input.spans.map(({ text }) => text).join("") : "";
}
