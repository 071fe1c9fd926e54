import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { InspectedRequest } from "../../inspect/inspected-request.ts";
import { judgeAside } from "../judge/judge-aside.ts";
import { JudgedView } from "../judge/judged-view.tsx";
import type { JudgedCapture } from "../judge/judging.ts";
import { captureOf } from "./findings.ts";

/** What the rules of `truewire check` say of the answer; they run in the browser. */
export function FindingsView({ request: { id, outcome, api } }: { readonly request: InspectedRequest }): VNode {
  const [judged, setJudged] = useState<JudgedCapture>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (outcome === "open") return;
    const leaving = new AbortController();
    const judge = async (): Promise<void> => {
      const capture = await captureOf(id, leaving.signal);
      if (!capture) return setProblem("It was never answered, or was too long to be kept whole: it cannot be judged.");
      for await (const one of judgeAside([capture])) if (!leaving.signal.aborted) setJudged(one);
    };
    judge().catch((error: unknown) => {
      if (!leaving.signal.aborted) setProblem(error instanceof Error ? error.message : String(error));
    });
    return () => leaving.abort();
  }, [id, outcome]);
  if (outcome === "open") return <p class="note">It is judged when it is over.</p>;
  if (api === undefined) return <p class="note">The rules apply to answers of models only.</p>;
  if (problem !== "") return <p class="note">{problem}</p>;
  return judged ? <JudgedView judged={judged} /> : <p class="waiting">Judging…</p>;
}
