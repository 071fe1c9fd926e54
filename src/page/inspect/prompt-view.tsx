import { promptMarks } from "./marks.ts";
import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import type { InspectedPrompt } from "../../wire/core/inspection.ts";
import type {
  InspectedRequest,
  ShownCacheMiss,
  TapeContents,
  TimedText,
} from "../../judge/inspect/inspected-request.ts";
import type { Mark } from "../parts/line-painter.ts";
import { Lines } from "../parts/lines.tsx";
import { countInWords } from "../parts/count-in-words.ts";

/** The prompt as the model read it, and what the model wrote. */
export function PromptView({ request }: { readonly request: InspectedRequest }): VNode {
  const { prompts, written, cached_tokens: cached, cache_miss: miss, asked } = request;
  if (prompts.length === 0 && written.length === 0)
    return (
      <p class="note">
        {asked.length > 0
          ? "The other server makes the prompt of what was sent to it: see Wire."
          : "No model of this server was asked with a prompt."}
      </p>
    );
  return (
    <div class="stack">
      {prompts.length > 0 && (
        <p class="legend">
          <mark class="control">control token</mark> <mark class="quote from-system">system</mark>{" "}
          <mark class="quote from-user">user</mark> <mark class="quote from-assistant">assistant</mark>{" "}
          <mark class="quote from-tool">tool</mark>
        </p>
      )}
      {miss && <Miss miss={miss} />}
      {prompts.map((prompt, at) => (
        <Prompt
          key={at}
          prompt={prompt}
          title={prompts.length > 1 ? `Prompt ${at}` : "The prompt"}
          cached={prompts.length === 1 ? cached : undefined}
        />
      ))}
      {written.map(({ choice, text }) => (
        <section key={choice} class="stack">
          <h3>{written.length > 1 ? `What the model wrote, choice ${choice}` : "What the model wrote"}</h3>
          <Lines label={`What the model wrote, choice ${choice}`} text={joined(text)} />
        </section>
      ))}
    </div>
  );
}

/** Why much of the prompt was read again: where it parts from an earlier one, and the cause. */
export function Miss({ miss: { says, at, texts } }: { readonly miss: ShownCacheMiss }): VNode {
  return (
    <section class="banner stack" aria-label="Why the cache was missed">
      <p>{says}</p>
      <p class="note">The first token that differs is number {at + 1}.</p>
      {texts && (
        <dl class="parting">
          <dt>before</dt>
          <dd>
            <code>
              {texts.before}
              <mark class="warning">{texts.known}</mark>
            </code>
          </dd>
          <dt>now</dt>
          <dd>
            <code>
              {texts.before}
              <mark class="warning">{texts.asked}</mark>
            </code>
          </dd>
        </dl>
      )}
    </section>
  );
}

interface PromptProperties {
  readonly prompt: InspectedPrompt;
  readonly title: string;
  readonly cached: number | undefined;
}

function Prompt({ prompt, title, cached }: PromptProperties): VNode {
  const { text, lengths } = prompt;
  const { marks, cachedEnd } = useMemo(() => promptMarks(prompt, cached), [prompt, cached]);
  const before = useMemo(() => within(marks, 0, cachedEnd ?? 0), [marks, cachedEnd]);
  const after = useMemo(() => within(marks, cachedEnd ?? 0, text.length), [marks, cachedEnd, text]);
  const count = lengths.length > 0 ? `: ${countInWords(lengths.length, "token")}` : "";
  if (cachedEnd === undefined || cachedEnd === 0)
    return (
      <section class="stack">
        <h3>
          {title}
          {count}
          {cachedEnd === 0 ? ", none of them in the cache" : ""}
        </h3>
        <Lines label={title} text={text} marks={marks} />
      </section>
    );
  return (
    <section class="stack">
      <h3>
        {title}
        {count}
      </h3>
      <h4>From the cache: {countInWords(cached ?? 0, "token")}</h4>
      <Lines
        class="captured cached"
        label={`${title}, from the cache`}
        text={text.slice(0, cachedEnd)}
        marks={before}
      />
      <h4>Processed again: {countInWords(lengths.length - (cached ?? 0), "token")}</h4>
      <Lines label={`${title}, processed again`} text={text.slice(cachedEnd)} marks={after} />
    </section>
  );
}

/** The marks of a part of the text, counted from its beginning. */
function within(marks: readonly Mark[], from: number, to: number): Mark[] {
  return marks.flatMap((mark) => {
    const start = Math.max(mark.start, from);
    const end = Math.min(mark.end, to);
    return end > start ? [{ ...mark, start: start - from, end: end - from }] : [];
  });
}

function joined({ chunks, left_out: leftOut }: TapeContents<TimedText>): string {
  const texts = chunks.map(({ text }) => text);
  if (!leftOut) return texts.join("");
  const gap = `\n… ${countInWords(leftOut.characters, "character")} were not kept in memory …\n`;
  return texts.slice(0, leftOut.after).join("") + gap + texts.slice(leftOut.after).join("");
}
