import MarkdownIt from "markdown-it";
import type { MarkdownIt as Parser, StateBlock, StateCore, StateInline, Token } from "markdown-it";

/** A longer text within a block is not searched for emphasis, links and so on: for some, the library's time is quadratic. In characters. */
const maxInlineLength = 10_000;

/** Blocks nested deeper than this are shown as text. A list and its item count as two levels. */
const maxLevel = 24;

/**
 * The parser of answers: CommonMark 0.31 with GFM's tables, strikethrough and bare URLs. Raw HTML is text, and so is a link whose address is
 * not http, https or mailto. Math (`$…$`, `$$…$$`, `\(…\)`, `\[…\]`) stays as it was written. There are no reference definitions: they
 * would change blocks that were rendered earlier.
 */
export const markdown: Parser = new MarkdownIt({ html: false, linkify: true });
markdown.disable("reference");
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false });
markdown.linkify.add("ftp:", null).add("//", null);
markdown.validateLink = (url) => /^(?:https?:\/\/[^/\s]|mailto:)/i.test(url.trim());
markdown.block.ruler.before("table", "too-deep", readTooDeep);
markdown.block.ruler.before("fence", "math_block", readMathBlock, { alt: ["paragraph", "blockquote", "list"] });
markdown.core.ruler.at("inline", readInline);
markdown.inline.ruler.before("escape", "math_inline", readMathInline);

/** Without this rule, markdown-it leaves out what is nested deeper than its own limit. */
function readTooDeep(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  if (silent || state.level < maxLevel) return false;
  let line = startLine + 1;
  while (line < endLine && !state.isEmpty(line) && (state.sCount[line] ?? 0) >= state.blkIndent) line++;
  state.push("paragraph_open", "p", 1).map = [startLine, line];
  const inline = state.push("inline", "", 0);
  inline.content = state.getLines(startLine, line, state.blkIndent, false).trim();
  inline.map = [startLine, line];
  inline.children = [];
  state.push("paragraph_close", "p", -1);
  state.line = line;
  return true;
}

function readInline({ md, tokens, env, Token }: StateCore): void {
  for (const token of tokens) {
    if (token.type !== "inline") continue;
    const children: Token[] = [];
    if (token.content.length <= maxInlineLength) md.inline.parse(token.content, md, env, children);
    else children.push(Object.assign(new Token("text", "", 0), { content: token.content }));
    token.children = children;
  }
}

/** Math whose line begins with `$$` or `\[`: up to the line with the closing delimiter, or to a blank line. */
function readMathBlock(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  if ((state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false;
  const textOf = (line: number): string =>
    state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]);
  const first = textOf(startLine);
  const close = first.startsWith("$$") ? "$$" : first.startsWith("\\[") ? "\\]" : undefined;
  if (close === undefined) return false;
  const end = first.indexOf(close, 2);
  // Text follows on the same line: a paragraph with math.
  if (end !== -1 && first.slice(end + 2).trim() !== "") return false;
  if (silent) return true;
  let line = startLine + 1;
  for (let closed = end !== -1; !closed && line < endLine; line++) {
    if (state.isEmpty(line) || (state.sCount[line] ?? 0) < state.blkIndent) break;
    closed = textOf(line).includes(close);
  }
  const token = state.push("math_block", "div", 0);
  token.content = state.getLines(startLine, line, state.blkIndent, false).trimEnd();
  token.map = [startLine, line];
  state.line = line;
  return true;
}

const delimiters = [
  ["$$", "$$"],
  ["$", "$"],
  ["\\(", "\\)"],
  ["\\[", "\\]"],
] as const;

/** The delimiters that are not in the rest of a text: each is searched for once. */
const missing = new WeakMap<StateInline, Set<string>>();

/** Math in a line. A single `$` follows pandoc's rule (`tex_math_dollars`), so that prices stay prices. */
function readMathInline(state: StateInline, silent: boolean): boolean {
  const { src, pos, posMax } = state;
  const found = delimiters.find(([open]) => src.startsWith(open, pos));
  if (!found) return false;
  const [open, close] = found;
  const from = pos + open.length;
  const known = missing.get(state);
  const at = known?.has(close) ? -1 : src.indexOf(close, from);
  const end = at + close.length;
  if (at === -1) missing.set(state, (known ?? new Set()).add(close));
  const isMath =
    at > from &&
    end <= posMax &&
    (open !== "$" || (!/\s/.test(src[from] ?? "") && !/[\s\\]/.test(src[at - 1] ?? "") && !/\d/.test(src[end] ?? "")));
  // A backslash is kept even before its math is complete.
  if (!isMath && open.startsWith("$")) return false;
  const until = isMath ? end : from;
  if (!silent) state.push(isMath ? "math_inline" : "text", "", 0).content = src.slice(pos, until);
  state.pos = until;
  return true;
}
