import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { announcement } from "../parts/changing.ts";
import { judgeAside } from "./judge-aside.ts";
import type { JudgedCapture } from "./judging.ts";
import { JudgedView } from "./judged-view.tsx";
import { droppedCaptures } from "./read-captures.ts";

/** Maximum number of captures of one file that are judged; a HAR file may contain thousands. */
const maxCaptures = 50;

/** A pasted text of at least this many characters is judged without being shown in the field, which would be slow. */
const longPaste = 50_000;

/** Judges captured answers. The rules run in the page: nothing is sent to a server. */
export function JudgeField(): VNode {
  const [all, setAll] = useState<readonly JudgedCapture[]>([]);
  const [left, setLeft] = useState(0);
  const [pasted, setPasted] = useState("");
  const [busy, setBusy] = useState("");
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);

  const judge = async (name: string, text: string): Promise<void> => {
    setBusy(name);
    setProblem("");
    announcement.say(`Judging ${name}.`);
    const done: JudgedCapture[] = [];
    try {
      const captures = droppedCaptures(name, text);
      if (captures.length === 0) throw new Error(`${name}: there is no answer in it`);
      for await (const one of judgeAside(captures.slice(0, maxCaptures))) {
        done.push(one);
        setAll((before) => [one, ...before]);
      }
      setLeft(captures.length - done.length);
      const errors = done.reduce((sum, { report }) => sum + report.counts.error, 0);
      announcement.say(
        `${done.length === 1 ? "One answer" : `${done.length} answers`} judged; broken rules: ${errors}.`,
      );
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      setProblem(words);
      announcement.say(words);
    } finally {
      setBusy("");
    }
  };
  const judgeFiles = async (files: FileList | null | undefined): Promise<void> => {
    for (const file of files ?? []) await judge(file.name, await file.text());
  };
  return (
    <section
      class={over ? "judging over" : "judging"}
      aria-label="Judge a captured answer"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void judgeFiles(event.dataTransfer?.files);
      }}
    >
      <form
        class="drop stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (pasted.trim() === "") return;
          void judge("pasted text", pasted).then(() => setPasted(""));
        }}
      >
        <h2>Judge a captured answer</h2>
        <p class="note">
          Drop a file here: an event stream or a JSON body, a recording of <code>truewire record</code>, a HAR file,
          what <code>curl -v</code> has printed, a report of <code>truewire check --format json</code>, a{" "}
          <code>--log-stream</code> file. Or paste its text. It stays in this tab: the rules of{" "}
          <code>truewire check</code> run here.
        </p>
        <textarea
          rows={4}
          class="code"
          aria-label="Captured text"
          placeholder="data: {…}"
          value={pasted}
          onInput={({ currentTarget }) => setPasted(currentTarget.value)}
          onPaste={(event) => {
            const text = event.clipboardData?.getData("text") ?? "";
            if (text.length < longPaste) return;
            event.preventDefault();
            void judge("pasted text", text);
          }}
        />
        <div class="row">
          <label class="button">
            Choose files
            <input
              class="unseen"
              type="file"
              multiple
              onChange={({ currentTarget }) => {
                void judgeFiles(currentTarget.files).then(() => (currentTarget.value = ""));
              }}
            />
          </label>
          <span class="hint" />
          {all.length > 0 && (
            <button type="button" class="quiet" onClick={() => setAll([])}>
              Clear
            </button>
          )}
          <button type="submit" class="main">
            Judge
          </button>
        </div>
      </form>
      {busy !== "" && <p class="waiting">Judging {busy}…</p>}
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      {left > 0 && <p class="banner">{left} more answers of that file were not judged.</p>}
      {all.map((judged, at) => (
        <JudgedView key={all.length - at} judged={judged} />
      ))}
    </section>
  );
}
