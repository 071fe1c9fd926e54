import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ServerProfileReport } from "../../wire/core/engine.ts";
import { AdminRefusal, askAdmin } from "../api/call-api.ts";
import { announcement } from "../parts/changing.ts";

/** What was learned about a model of an upstream, with its dates, and buttons that undo it. `onForgotten`: called when a lesson was forgotten. */
export function Lessons({
  report: { url, model, lessons },
  onForgotten,
}: {
  readonly report: ServerProfileReport;
  readonly onForgotten: () => void;
}): VNode | null {
  const [problem, setProblem] = useState("");
  if (lessons.length === 0) return null;
  const forget = async (lesson: string): Promise<void> => {
    try {
      await (
        await askAdmin("models/forget", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model, url, lesson }),
        })
      ).text();
      setProblem("");
      announcement.say(`Forgotten: ${lesson}.`);
      onForgotten();
    } catch (error) {
      setProblem(
        error instanceof AdminRefusal ? error.message : "The server that this page is from cannot be reached.",
      );
    }
  };
  return (
    <section class="stack" aria-label={`Learned about ${model} at ${url}`}>
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      <ul class="stack">
        {lessons.map(({ id, learned }) => (
          <li key={id} class="row">
            <code>{id}</code>
            <span class="note">
              {learned === undefined ? (
                "learned before dates were kept"
              ) : (
                <>
                  learned <time dateTime={learned}>{new Date(learned).toLocaleString()}</time>
                </>
              )}
            </span>
            <button type="button" aria-label={`Forget ${id}`} onClick={() => void forget(id)}>
              Forget
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
