import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import type { TokenAlternative, TokenLogprob } from "../../wire/core/events.ts";
import { Changing, useChanges } from "../parts/changing.ts";

/** The tokens under the pointer, and their position on the screen. */
class PointedTokens extends Changing {
  tokens: readonly TokenLogprob[] = [];
  place: DOMRect | undefined;

  show(tokens: readonly TokenLogprob[], place: DOMRect): void {
    this.tokens = tokens;
    this.place = place;
    this.changed();
  }

  hide(): void {
    if (!this.place) return;
    this.place = undefined;
    this.changed();
  }
}

export const pointed: PointedTokens = new PointedTokens();

/** Shows the probabilities of the tokens under the pointer, and their alternatives. */
export function TokenTip(): VNode | null {
  useChanges(pointed);
  useEffect(() => {
    const hide = (): void => pointed.hide();
    const hideByKey = ({ key }: KeyboardEvent): void => {
      if (key === "Escape") pointed.hide();
    };
    addEventListener("scroll", hide, { capture: true, passive: true });
    addEventListener("keydown", hideByKey);
    return () => {
      removeEventListener("scroll", hide, { capture: true });
      removeEventListener("keydown", hideByKey);
    };
  }, []);
  const { place, tokens } = pointed;
  if (!place) return null;
  const below = place.bottom + 220 < innerHeight;
  return (
    <div
      class="tip"
      role="tooltip"
      style={{
        left: `${Math.max(8, Math.min(place.left, innerWidth - 240))}px`,
        ...(below ? { top: `${place.bottom}px` } : { bottom: `${innerHeight - place.top}px` }),
      }}
    >
      {tokens.map((token, at) => (
        <TokenRows key={at} token={token} />
      ))}
    </div>
  );
}

function TokenRows({ token }: { readonly token: TokenLogprob }): VNode {
  const { top } = token;
  const all: readonly TokenAlternative[] = top.some((other) => other.token === token.token) ? top : [token, ...top];
  return (
    <ol>
      {all.map((other, at) => (
        <li key={at} class={other.token === token.token ? "taken" : undefined}>
          <code>{shown(other.token)}</code>
          <meter min={0} max={1} value={probability(other)} aria-hidden="true" />
          <span>{percent(other)}</span>
        </li>
      ))}
    </ol>
  );
}

/** The same in words, for those who hear the page. */
export function tokensInWords(tokens: readonly TokenLogprob[]): string {
  return tokens
    .map((token) => {
      const others = token.top.filter((other) => other.token !== token.token);
      const rest = others.map((other) => `${shown(other.token)} ${percent(other)}`).join(", ");
      return `${shown(token.token)} ${percent(token)}${rest === "" ? "" : `; also ${rest}`}`;
    })
    .join(". ");
}

function probability({ logprob }: TokenAlternative): number {
  return logprob === null ? 0 : Math.exp(logprob);
}

function percent(token: TokenAlternative): string {
  const value = probability(token) * 100;
  if (value >= 99.95) return "100 %";
  return value >= 0.1 ? `${value.toFixed(1)} %` : "< 0.1 %";
}

/** Makes white space and line ends visible, and names a token without text. */
function shown(text: string): string {
  if (text === "") return "(no text)";
  return text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll(/^ | $/g, "␣");
}
