import { listen } from "../support/listen.ts";
import type { IncomingMessage, ServerResponse } from "node:http";

/** One page that the double knows. */
export interface SearxngPage {
  readonly url: string;
  readonly title: string;
  readonly content: string;
  /** ISO 8601. */
  readonly publishedDate?: string;
}

export interface SearxngDouble {
  readonly url: string;
  /** The parameters of each search. */
  readonly searches: URLSearchParams[];
  close(): Promise<void>;
}

/**
 * A SearXNG. Its answers in JSON are those of searxng/searxng at 9fea4120 (2026-08-22), `searx/webutils.py`, `get_json_response`, with the
 * members of `searx/result_types/_base.py`, `MainResult`, in their order; HTTP 403 for a form that its settings do not allow is from
 * `searx/webapp.py`, `search`. `allowsJson`: `search.formats` of its settings.
 */
export async function searxngDouble(
  pages: readonly SearxngPage[],
  {
    allowsJson = true,
    answer,
  }: { readonly allowsJson?: boolean; readonly answer?: (response: ServerResponse) => void } = {},
): Promise<SearxngDouble> {
  const searches: URLSearchParams[] = [];
  const search = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    if (pathname !== "/search") return void response.writeHead(404).end();
    searches.push(searchParams);
    if (answer) return answer(response);
    if (searchParams.get("format") !== "json" || !allowsJson) return void response.writeHead(403).end("403 Forbidden");
    const query = searchParams.get("q") ?? "";
    const body = {
      query,
      results: pages.map((page, at) => resultOf(page, at)),
      answers: [],
      corrections: [],
      infoboxes: [],
      suggestions: [],
      unresponsive_engines: [["brave", "timeout"]],
    };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
  const { url, close } = await listen(search);
  return { url, searches, close };
}

function resultOf({ url, title, content, publishedDate }: SearxngPage, at: number): object {
  const { protocol, host, pathname } = new URL(url);
  return {
    url,
    engine: "duckduckgo",
    parsed_url: [protocol.slice(0, -1), host, pathname, "", "", ""],
    template: "default.html",
    title,
    content,
    img_src: "",
    iframe_src: "",
    audio_src: "",
    thumbnail: "",
    publishedDate: publishedDate ?? null,
    pubdate: "",
    length: null,
    views: "",
    author: "",
    metadata: "",
    priority: "",
    engines: ["duckduckgo"],
    open_group: false,
    close_group: false,
    positions: [at + 1],
    score: 1 / (at + 1),
    category: "general",
  };
}
