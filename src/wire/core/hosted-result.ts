import type { HostedCodeOutput, HostedFailure, HostedFailureCode, HostedResult, SearchResult } from "./hosted-tool.ts";
import type { Content, ContentPart } from "./message.ts";

/**
 * Returns what the model reads of a result. A later request contains the same result in the form of its API, and the same content is made
 * of it again, so that the prompt cache still has it.
 */
export function resultContent(result: HostedResult): Content {
  switch (result.kind) {
    case "search":
      return searchText(result.results);
    case "document": {
      const head = `URL: ${result.url}${result.title === undefined ? "" : `\nTitle: ${result.title}`}`;
      const { content, mediaType } = result;
      if ("text" in content) return `${head}\n\n${content.text}`;
      const data = `data:${mediaType};base64,${content.base64}`;
      return [
        { type: "text", text: head },
        { type: "file", name: result.title ?? result.url, data },
      ];
    }
    case "contents": {
      const [first] = result.contents;
      return result.contents.length === 1 && first?.type === "text" ? first.text : withoutEmpty(result.contents);
    }
    case "code":
      return codeContent(result);
    case "files": {
      const texts = result.results.map(({ filename, text }, index) => `[${index + 1}] ${filename}\n${text}`);
      return texts.length === 0 ? "No files match." : texts.join("\n\n");
    }
    case "image": {
      const { revisedPrompt: prompt } = result;
      return `The image was generated, and the user sees it.${prompt === undefined ? "" : ` Its prompt was: ${prompt}`}`;
    }
    case "failure":
      return `Error: ${result.message}`;
  }
}

/** Whether the tool failed: the content is its error. */
export function isFailed(result: HostedResult): boolean {
  return result.kind === "failure" || (result.kind === "contents" && result.isError);
}

function searchText(results: readonly SearchResult[]): string {
  if (results.length === 0) return "No results.";
  const texts = results.map(({ title, url, text, age }, index) =>
    [`[${index + 1}] ${title}`, `URL: ${url}`, ...(age === undefined ? [] : [`Age: ${age}`]), text].join("\n"),
  );
  return `${texts.join("\n\n")}\n\n${citeResults}`;
}

const citeResults = "Cite the results that you use as Markdown links with their URLs.";

function codeContent({ stdout, stderr, returnCode, images = [] }: HostedCodeOutput): Content {
  const texts = [
    ...(stdout === "" ? [] : [stdout]),
    ...(stderr === "" ? [] : [`stderr:\n${stderr}`]),
    ...(returnCode === 0 ? [] : [`exit code ${returnCode}`]),
  ];
  const text = texts.length === 0 ? "The code has no output." : texts.join("\n");
  if (images.length === 0) return text;
  return [{ type: "text", text }, ...images.map((url): ContentPart => ({ type: "image", url }))];
}

function withoutEmpty(contents: readonly ContentPart[]): Content {
  const parts = contents.filter((part) => part.type !== "text" || part.text !== "");
  return parts.length === 0 ? "" : parts;
}

/** The texts of a result, joined, for APIs whose results are one text. */
export function resultText(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
}

/** The usual sentence of each failure, for results whose API has only a code. */
export const failureMessages: Readonly<Record<HostedFailureCode, string>> = {
  unavailable: "The tool is not available on this server.",
  "invalid-input": "The arguments are not those of the tool.",
  "query-too-long": "The query is too long.",
  "url-too-long": "The URL is too long.",
  "max-uses-exceeded": "The maximum number of calls of this tool is reached. Answer without further calls.",
  "too-many-requests": "The tool refuses more requests at the moment.",
  "too-large": "The result is too large.",
  "url-not-allowed": "The URL is not allowed.",
  "url-not-in-context": "The URL is not in the conversation.",
  "url-not-accessible": "The URL does not answer.",
  "unsupported-content-type": "The document is neither text nor PDF.",
  timeout: "The tool did not answer in time.",
  "protocol-error": "The server of the tool broke the protocol.",
};

/** `message`: default, the usual sentence. */
export function hostedFailure(code: HostedFailureCode, message: string = failureMessages[code]): HostedFailure {
  return { kind: "failure", code, message };
}
