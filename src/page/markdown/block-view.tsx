import type { Token } from "markdown-it";
import type { ComponentChild, ComponentType, VNode } from "preact";
import type { MarkdownBlock } from "./block-splitter.ts";
import { Lazy } from "../parts/lazy.tsx";
import { CodeBlock } from "./code-block.tsx";
import type { FormulaProperties } from "./formula-view.tsx";
import { markdown } from "./parser.ts";

interface Properties {
  readonly block: MarkdownBlock;
  /** More text may follow: code at the end may be incomplete. */
  readonly open: boolean;
  /** The first of its text: others are separated from the previous one, for those who take the text without its elements. */
  readonly first: boolean;
}

/** A block of a Markdown text as elements. Only elements that are named here are made, and only links have an address. */
export function BlockView({ block, open, first }: Properties): VNode {
  const separator = first ? "" : "\n";
  if (block.kind === "code")
    return (
      <>
        {separator}
        <CodeBlock language={block.language} chunks={block.chunks} complete={block.closed || !open} />
      </>
    );
  const reader = new TokenReader(markdown.parse(block.source, {}), open, block.start);
  return (
    <>
      {separator}
      {reader.children()}
    </>
  );
}

/** Makes elements of a flat list of tokens. */
class TokenReader {
  readonly #tokens: readonly Token[];
  readonly #open: boolean;
  #at = 0;
  #start: number | undefined;
  /** Links around the current token. */
  #links = 0;

  constructor(tokens: readonly Token[], open: boolean, start?: number) {
    this.#tokens = tokens;
    this.#open = open;
    this.#start = start;
  }

  /** The elements up to the end of the current one. Adjacent texts become one. */
  children(): ComponentChild[] {
    const made: ComponentChild[] = [];
    let text = "";
    const flush = (): void => {
      if (text !== "") made.push(text);
      text = "";
    };
    while (this.#at < this.#tokens.length) {
      const token = this.#tokens[this.#at++];
      if (!token || token.nesting === -1) break;
      if (token.type === "text" || token.type === "softbreak") text += token.type === "text" ? token.content : "\n";
      else {
        flush();
        made.push(this.#element(token));
      }
    }
    flush();
    return made;
  }

  #element(token: Token): ComponentChild {
    switch (token.type) {
      case "inline":
        return new TokenReader(token.children ?? [], this.#open).children();
      case "paragraph_open":
        return <p dir={directionOf(token)}>{this.children()}</p>;
      case "heading_open":
        // The name of the model is an h2. A level between could be missing in the answer.
        return (
          <h3 class={`level-${token.tag.slice(1)}`} dir={directionOf(token)}>
            {this.children()}
          </h3>
        );
      case "blockquote_open":
        return <blockquote dir={directionOf(token)}>{this.children()}</blockquote>;
      case "bullet_list_open":
        return <ul dir={directionOf(token)}>{this.children()}</ul>;
      case "ordered_list_open": {
        const start = this.#start ?? Number(token.attrGet("start") ?? 1);
        this.#start = undefined;
        return (
          <ol start={start} dir={directionOf(token)}>
            {this.children()}
          </ol>
        );
      }
      case "list_item_open":
        return this.#item();
      case "table_open":
        return (
          <div class="table" dir="auto" tabIndex={0} role="group" aria-label="Table">
            <table>{this.children()}</table>
          </div>
        );
      case "thead_open":
        return <thead>{this.children()}</thead>;
      case "tbody_open":
        return <tbody>{this.children()}</tbody>;
      case "tr_open":
        return <tr>{this.children()}</tr>;
      case "th_open":
        return (
          <th scope="col" class={alignmentOf(token)}>
            {this.children()}
          </th>
        );
      case "td_open":
        return <td class={alignmentOf(token)}>{this.children()}</td>;
      case "fence":
      case "code_block": {
        const language = /^\S*/.exec(token.info.trim())?.[0] ?? "";
        return <CodeBlock language={language} chunks={[token.content]} complete={!this.#open} />;
      }
      case "hr":
        return <hr />;
      case "hardbreak":
        return <br />;
      case "code_inline":
        return <code>{token.content}</code>;
      case "em_open":
        return <em>{this.children()}</em>;
      case "strong_open":
        return <strong>{this.children()}</strong>;
      case "s_open":
        return <s>{this.children()}</s>;
      case "link_open":
        return this.#link(token);
      case "image":
        return <ImageLink token={token} insideLink={this.#links > 0} />;
      case "math_inline":
        return <Formula token={token} block={false} />;
      case "math_block":
        return <Formula token={token} block />;
      case "math_text":
        return <p class="math">{token.content}</p>;
      default:
        return token.nesting === 1 ? <>{this.children()}</> : token.content;
    }
  }

  #link(token: Token): VNode {
    this.#links++;
    const children = this.children();
    this.#links--;
    return (
      <Link address={String(token.attrGet("href"))} bare={token.info === "auto"}>
        {children}
      </Link>
    );
  }

  #item(): VNode {
    const inline = this.#tokens[this.#at + 1];
    const first = inline?.type === "inline" ? inline.children?.[0] : undefined;
    const task = first?.type === "text" ? /^\[([ xX])\](?: |$)/.exec(first.content) : null;
    if (!task || !first) return <li>{this.children()}</li>;
    first.content = first.content.slice(task[0].length);
    const done = task[1] !== " ";
    return (
      <li class="task">
        <span role="img" aria-label={done ? "Done" : "To do"}>
          {done ? "☑" : "☐"}
        </span>
        <div>{this.children()}</div>
      </li>
    );
  }
}

/** Of a block at the top level, the direction of its first letter. What is inside has the same: the marks of a list are on one side. */
function directionOf({ level }: Token): "auto" | undefined {
  return level === 0 ? "auto" : undefined;
}

function alignmentOf(token: Token): string | undefined {
  return /^text-align:(center|right)$/.exec(String(token.attrGet("style") ?? ""))?.[1];
}

/** Its script is loaded with the first formula. */
const loadFormula = async (): Promise<ComponentType<FormulaProperties>> => (await import("./formula-view.tsx")).default;

/** A formula; until its script is there, as it was written. `block`: it has lines of its own. */
function Formula({ token: { content, markup }, block }: { readonly token: Token; readonly block: boolean }): VNode {
  const source = block ? <p class="math">{content}</p> : <span class="math">{content}</span>;
  const tex = content.trim().slice(markup.length, -markup.length);
  const display = block || (markup !== "$" && markup !== "\\)");
  return <Lazy load={loadFormula} properties={{ tex, display, block, source }} meanwhile={source} />;
}

interface LinkProperties {
  readonly address: string;
  /** The text is the address. */
  readonly bare?: boolean;
  readonly children: ComponentChild;
}

/** A link to another site, with its address in sight. `markdown.validateLink` has refused all but http, https and mailto. */
function Link({ address, bare = false, children }: LinkProperties): VNode {
  if (!URL.canParse(address)) return <>{children}</>;
  const url = new URL(address);
  const shown =
    url.protocol === "mailto:" ? url.pathname : `${url.host}${url.pathname.replace(/\/$/, "")}${url.search}`;
  return (
    <a
      href={url.href}
      target="_blank"
      rel="noopener noreferrer"
      title={url.href}
      {...(!bare && { "data-address": shown.length > 50 ? `${shown.slice(0, 49)}…` : shown })}
    >
      {children}
    </a>
  );
}

/** An image is not loaded: its server would learn who reads the answer. */
function ImageLink({ token, insideLink }: { readonly token: Token; readonly insideLink: boolean }): VNode {
  const alt = token.content === "" ? "Image" : `Image: ${token.content}`;
  return insideLink ? <>{alt}</> : <Link address={String(token.attrGet("src"))}>{alt}</Link>;
}
