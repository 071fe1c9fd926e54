import MarkdownIt from "markdown-it";
import type { MarkdownIt as Parser, StateBlock, StateCore, StateInline, Token } from "markdown-it";

/** A longer text within a block is not searched for emphasis, links and so on: for some, the library's time is quadratic. In characters. */
const maxInlineLength = 10_000;

/** Blocks nested deeper than this are shown as text. A list and its item count as two levels. */
const maxLevel = 24;

/**
 * The parser of answers: CommonMark 0.31 with GFM's tables, strikethrough and bare URLs. Raw HTML is text, and so is a link whose address is
 * not http, https or mailto. Formulas (`$…$`, `$$…$$`, `\(…\)`, `\[…\]`) are tokens with their source; one that is not closed is text. There
 * are no reference definitions: they would change blocks that were rendered earlier.
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

/**
 * A formula whose line begins with `$$` or `\[`: up to the line that ends with the closing delimiter. Without one, the lines up to a blank
 * one are a text of their own, `math_text`: the rest of the formula may follow.
 */
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
  let closed = end !== -1;
  for (; !closed && line < endLine; line++) {
    if (state.isEmpty(line) || (state.sCount[line] ?? 0) < state.blkIndent) break;
    const text = textOf(line);
    closed = text.trimEnd().endsWith(close);
    // Text follows here, too.
    if (!closed && text.includes(close)) return false;
  }
  const token = state.push(closed ? "math_block" : "math_text", "div", 0);
  token.content = state.getLines(startLine, line, state.blkIndent, false).trimEnd();
  token.markup = close;
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

/**
 * Whether the text between two single `$` is a formula and not the text between two prices or two names of a shell. As for pandoc
 * (`tex_math_dollars`), no space follows the first one, and neither a space precedes the second one nor a digit follows it. Besides, no letter or
 * digit precedes the first one (`US$5`); and words, or text that a letter follows (`$HOME/$USER`), are a formula only with a sign of LaTeX.
 */
function isFormula(before: string, text: string, after: string): boolean {
  if (/\s/.test(text[0] ?? "") || /[\s\\]/.test(text.at(-1) ?? "") || /\d/.test(after) || /[\p{L}\p{N}]/u.test(before))
    return false;
  if (/[\\^_{}=<>]/.test(text)) return true;
  return /\p{L}/u.test(after)
    ? text.length <= 2
    : !/\d.*\s\p{L}{2}|\p{L}{3,}\s+\p{L}{2,}/u.test(text.slice(0, maxProse));
}

/** How many characters of the text between two single `$` are searched for words. */
const maxProse = 200;

/** A formula in a line. */
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
    at > from && end <= posMax && (open !== "$" || isFormula(src[pos - 1] ?? "", src.slice(from, at), src[end] ?? ""));
  // A backslash is kept even before its math is complete.
  if (!isMath && open.startsWith("$")) return false;
  const until = isMath ? end : from;
  if (!silent) {
    const token = state.push(isMath ? "math_inline" : "text", "", 0);
    token.content = src.slice(pos, until);
    token.markup = close;
  }
  state.pos = until;
  return true;
}
