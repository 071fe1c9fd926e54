/** What a client's text must not become. */
export interface GuardedTokens {
  /** In every text of the client. */
  readonly everywhere: SpecialTokens;
  /** In texts that may come from others (user messages, tool results): the same tokens and the markup. */
  readonly foreign: SpecialTokens;
  /**
   * The markup alone: tokens of the vocabulary that structure a conversation (`<tool_call>`, `</think>`) and are not control tokens.
   * A tokenizer makes them of plain text, too: llama.cpp (`tokenizer_st_partition`) and Hugging Face's tokenizers match user-defined
   * tokens whether special tokens are meant or not.
   */
  readonly markup: SpecialTokens;
}

/**
 * `markup`: tokens that are not control tokens. Those that the template writes itself are guarded; others are text. A token of one character cannot be kept from a tokenizer, and is not guarded; nor is a piece of JSON, such as `": "`,
 * which means the same whoever writes it, and which a model knows as one token.
 */
export function guardedTokens(
  control: readonly string[],
  markup: readonly string[],
  templateLiterals: readonly string[],
): GuardedTokens {
  const everywhere = new SpecialTokens(control, templateLiterals);
  const written = templateLiterals.join("\n");
  const used = markup.filter(
    (token) => Array.from(token).length > 1 && !isPieceOfJson(token) && written.includes(token),
  );
  if (used.length === 0) return { everywhere, foreign: everywhere, markup: noTokens };
  return {
    everywhere,
    foreign: new SpecialTokens([...control, ...used], templateLiterals),
    markup: new SpecialTokens(used, []),
  };
}

/** JSON's punctuation, with or without names; no tag, and no name in brackets (`[TOOL_CALLS]`). */
function isPieceOfJson(token: string): boolean {
  return /^(?:[{}\]",:]|\[(?![\w/]))/.test(token) && !/[<>｜]/.test(token);
}

/** A part of a text, by its offsets. */
export interface Found {
  readonly start: number;
  readonly end: number;
}

/**
 * The special tokens' texts, arranged to find them in a client's strings: each string is walked once, whatever their number.
 *
 * A client can also spell a token together with the template, which writes `<` + name + `>`, or with a neighbouring string. Such a
 * token begins either in a string of the client, whose end then is the beginning of a token, or at the end of one of the template's
 * own literals. Both ends are looked at: the first always, the second for the templates that have such literals.
 */
export class SpecialTokens {
  readonly #root: Node = { next: new Map(), ends: false };
  readonly #starts: RegExp | null;
  readonly #longest: number;
  /** Where the template's literals stop inside a token. */
  readonly #dangling: readonly Node[];

  /**
   * `templateLiterals`: every text that the template writes itself. Tokens of white space are not guarded: they
   * have no meaning, and marking them would keep templates from trimming.
   */
  constructor(tokens: readonly string[], templateLiterals: readonly string[]) {
    const used = tokens.filter((token) => token.trim() !== "");
    for (const token of used) {
      let node = this.#root;
      for (const character of token) {
        let next = node.next.get(character);
        if (!next) node.next.set(character, (next = { next: new Map(), ends: false }));
        node = next;
      }
      node.ends = true;
    }
    this.#longest = Math.max(0, ...used.map((token) => token.length));
    const starts = [...this.#root.next.keys()];
    this.#starts = starts.length === 0 ? null : new RegExp(starts.map(escaped).join("|"), "gu");
    this.#dangling = [...new Set(templateLiterals.flatMap((literal) => this.#openAtEnd(literal)?.node ?? []))];
  }

  /** What must be marked in a client's string, in order, not overlapping. */
  findIn(text: string): Found[] {
    if (this.#starts === null || text === "") return [];
    const found: Found[] = [];
    const head = this.#continued(text);
    let from = 0;
    if (head > 0) {
      found.push({ start: 0, end: head });
      from = head;
    }
    this.#starts.lastIndex = from;
    for (let match = this.#starts.exec(text); match !== null; match = this.#starts.exec(text)) {
      const end = this.#walk(this.#root, text, match.index).end;
      if (end === null) continue;
      found.push({ start: match.index, end });
      from = end;
      this.#starts.lastIndex = end;
    }
    const open = this.#openAtEnd(text, from);
    if (open !== null) found.push({ start: open.start, end: text.length });
    return found;
  }

  /** The text in pieces that hold no whole token: each token is cut after its first character. */
  apart(text: string): string[] {
    if (this.#starts === null) return [text];
    const pieces: string[] = [];
    let from = 0;
    this.#starts.lastIndex = 0;
    for (let match = this.#starts.exec(text); match !== null; match = this.#starts.exec(text)) {
      if (this.#walk(this.#root, text, match.index).end === null) continue;
      const cut = match.index + match[0].length;
      pieces.push(text.slice(from, cut));
      from = cut;
    }
    return from < text.length ? [...pieces, text.slice(from)] : pieces;
  }

  /** The longest token from here on; and, where the text ends inside the tokens, the node it got to. */
  #walk(node: Node, text: string, start: number): { end: number | null; open: Node | null } {
    let end: number | null = null;
    let at = start;
    let here: Node | undefined = node;
    while (at < text.length) {
      const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
      here = here.next.get(character);
      if (here === undefined) return { end, open: null };
      at += character.length;
      if (here.ends) end = at;
    }
    return { end, open: here.next.size > 0 ? here : null };
  }

  /** The longest end of the text that is the beginning of a token. */
  #openAtEnd(text: string, from = 0): { start: number; node: Node } | null {
    if (this.#starts === null) return null;
    this.#starts.lastIndex = Math.max(from, text.length - this.#longest + 1);
    for (let match = this.#starts.exec(text); match !== null; match = this.#starts.exec(text)) {
      const { open } = this.#walk(this.#root, text, match.index);
      if (open !== null) return { start: match.index, node: open };
    }
    return null;
  }

  /** How much of the text's beginning continues a token that one of the template's literals has begun. */
  #continued(text: string): number {
    let longest = 0;
    for (const node of this.#dangling) {
      const { end, open } = this.#walk(node, text, 0);
      longest = Math.max(longest, open === null ? (end ?? 0) : text.length);
    }
    return longest;
  }
}

const noTokens = new SpecialTokens([], []);

interface Node {
  readonly next: Map<string, Node>;
  /** A token ends here. */
  ends: boolean;
}

function escaped(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
}
