import { Buffer } from "node:buffer";
import { download, type DownloadedFile } from "../../engines/upstream/background/download.ts";
import { DownloadError } from "../../engines/upstream/background/guarded-downloads.ts";
import type { Background, PageText } from "../../engines/upstream/background/background.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { HostedCall, HostedFailure, HostedFunction, HostedResult } from "../../wire/core/hosted-tool.ts";
import type { Message } from "../../wire/core/message.ts";
import { type DomainRules, isAllowed } from "./domains.ts";
import { abandoned, type ExecutorSetup, failure, type OpenExecutor, OutputBudget, shown } from "./executor.ts";

export interface WebFetchSetup extends ExecutorSetup, DomainRules {
  /** Hosts that may have private addresses: names or addresses. */
  readonly privateHosts: readonly string[];
  /** Fetch addresses that are not in the conversation, too. */
  readonly anyUrl: boolean;
  /** The largest page or document, in bytes. */
  readonly maxSize: number;
  /** The longest PDF, which is passed on whole, in characters of base64. */
  readonly maxDocument: number;
  readonly background: Pick<Background, "pageText" | "close">;
}

const maxUrl = 2000;
const charactersPerToken = 4;
const accept = "text/html, application/xhtml+xml, text/plain;q=0.9, application/pdf;q=0.9, */*;q=0.5";

const functions: readonly HostedFunction[] = [
  {
    name: "web_fetch",
    description:
      "Fetches a web page or a PDF, and returns its text. The URL must be one of the conversation: from the user, a search, or a page that was fetched.",
    parameters: {
      type: "object",
      properties: { url: { type: "string", description: "The whole URL, with https://" } },
      required: ["url"],
    },
    readOnly: true,
  },
];

export function openWebFetch(setup: WebFetchSetup): OpenExecutor {
  const { name, timeoutMs, maxCalls } = setup;
  return {
    name,
    kind: "web_fetch",
    timeoutMs,
    maxCalls,
    functions: async () => functions,
    run: (call, signal) => fetchPage(setup, call, signal),
    close: async () => setup.background.close(),
  };
}

async function fetchPage(
  setup: WebFetchSetup,
  { tool, arguments: given, messages, owner }: HostedCall,
  signal: AbortSignal,
): Promise<HostedResult> {
  const { url } = given;
  if (typeof url !== "string" || !URL.canParse(url))
    return failure(
      "invalid-input",
      `Expected a URL in url, such as {"url": "https://example.com/"}, not ${shown(given)}.`,
    );
  if (url.length > maxUrl)
    return failure("url-too-long", `The URL has ${url.length} characters; at most ${maxUrl} are fetched.`);
  const { allowedDomains, blockedDomains, maxContentTokens } = tool.options;
  const mayFetch = (address: string): boolean => isAllowed(address, setup, { allowedDomains, blockedDomains });
  if (!mayFetch(url)) return failure("url-not-allowed", `${shown(url)} is not of an allowed domain.`);
  if (!setup.anyUrl && !isInConversation(url, messages))
    return failure(
      "url-not-in-context",
      `${shown(url)} is not in the conversation: only addresses of the user, of searches and of fetched pages are fetched.`,
    );
  const privateHosts = new Set(setup.privateHosts.map((host) => host.toLowerCase()));
  try {
    const file = await download(url, {
      accept,
      maxBytes: setup.maxSize,
      timeoutMs: setup.timeoutMs,
      allowPrivateAddresses: (host) => privateHosts.has(host.toLowerCase()),
      checkUrl: (address) => {
        if (!mayFetch(address.href)) throw new DownloadError("refused", `${address.host} is not an allowed domain`);
      },
      signal,
    });
    const retrieved = new Date().toISOString();
    if (isPdf(file)) {
      if (file.bytes.length * (4 / 3) > setup.maxDocument)
        return failure("too-large", `The PDF has ${file.bytes.length} bytes, which is more than a result may have.`);
      const base64 = Buffer.from(file.bytes).toString("base64");
      return { kind: "document", url: file.url, mediaType: "application/pdf", content: { base64 }, retrieved };
    }
    const page = await setup.background.pageText(file.bytes, file.contentType, file.url, { owner, signal });
    const maxText = Math.min(setup.maxOutput, (maxContentTokens ?? Infinity) * charactersPerToken);
    return documentOf(page, file.url, new OutputBudget(maxText), retrieved);
  } catch (error) {
    return signal.aborted ? abandoned : refusalOf(error);
  }
}

function isPdf({ bytes }: DownloadedFile): boolean {
  return Buffer.from(bytes.subarray(0, 1024)).toString("latin1").includes("%PDF-");
}

function documentOf(
  { title, text, isCut, mediaType }: PageText,
  url: string,
  budget: OutputBudget,
  retrieved: string,
): HostedResult {
  const whole = isCut ? `${text}\n[The rest of the page was left out.]` : text;
  return {
    kind: "document",
    url,
    ...(title !== undefined && { title }),
    mediaType,
    content: { text: budget.text(whole) },
    retrieved,
  };
}

function refusalOf(error: unknown): HostedFailure {
  if (error instanceof FailureError && error.failure.status === 429)
    return failure("too-many-requests", "Too many pages wait to be read.", 429);
  const reason = error instanceof Error ? error.message : String(error);
  const sentence = `The page cannot be fetched: ${shown(reason)}.`;
  if (!(error instanceof DownloadError))
    return failure(reason.startsWith("its type") ? "unsupported-content-type" : "url-not-accessible", sentence);
  switch (error.code) {
    case "refused":
      return failure("url-not-allowed", sentence);
    case "too-large":
      return failure("too-large", sentence);
    case "timeout":
      return failure("timeout", sentence);
    case "failed":
      return failure("url-not-accessible", sentence, error.status);
  }
}

/**
 * Whether an address is one that the user, a tool or the instructions have named, not the model: else a page could make the model send what
 * it knows to any address. The scheme and a slash at the end do not count. Source: "URL validation" of
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-fetch-tool.
 */
export function isInConversation(url: string, messages: readonly Message[]): boolean {
  const names = [...new Set([url, new URL(url).href].map(withoutScheme))];
  return messages.some(({ role, content }) => {
    if (role === "assistant") return false;
    const texts =
      typeof content === "string" ? [content] : content.map((part) => ("text" in part ? (part.text ?? "") : ""));
    return texts.some((text) => names.some((name) => containsAddress(text, name)));
  });
}

function withoutScheme(url: string): string {
  return url
    .replace(/^https?:\/\//i, "")
    .replace(/#[^]*$/, "")
    .replace(/\/$/, "");
}

/** Whether a text has this address as a whole: not as the beginning of a longer one. */
function containsAddress(text: string, name: string): boolean {
  if (name === "") return false;
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + name.length)) {
    const before = text.slice(Math.max(0, at - 2), at);
    const after = text.slice(at + name.length, at + name.length + 3);
    if (!/[\w.@-]$|^[^/]\/$|^\/$/.test(before) && !/^\/?(?:[\w%=~+-]|[?&]\w)|^[.:]\w/.test(after)) return true;
  }
  return false;
}
