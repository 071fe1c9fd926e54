import type { ComponentChildren, VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { AdminRefusal, askAdmin } from "../api/call-api.ts";
import { announcement } from "../parts/changing.ts";
import { saveFile } from "../parts/save-file.ts";
import { countInWords } from "./words.ts";

interface Properties {
  /** What is exported, for the names of the buttons: `session`. */
  readonly subject: string;
  readonly ids: readonly string[];
}

const formats = [
  { name: "har", title: "HAR", extension: "har", type: "application/json" },
  { name: "recording", title: "recording", extension: "jsonl", type: "application/x-ndjson" },
] as const;

/** The number of ids in one address: servers limit its length. */
const maxIds = 200;

/** Buttons that save requests with their answers as a file, for other tools and for `truewire replay`, `check` and `repair`. */
export function ExportButtons({ subject, ids }: Properties): VNode {
  const [problem, setProblem] = useState("");
  const save = async ({ name, title, extension, type }: (typeof formats)[number]): Promise<void> => {
    setProblem("");
    try {
      const texts: string[] = [];
      for (let at = 0; at < ids.length; at += maxIds) {
        const query = new URLSearchParams([
          ["format", name],
          ...ids.slice(at, at + maxIds).map((id): [string, string] => ["id", id]),
        ]);
        texts.push(await (await askAdmin(`requests/export?${query.toString()}`, {})).text());
      }
      const text = name === "har" ? oneHar(texts) : texts.join("");
      saveFile(`${subject.replaceAll(" ", "-")}.${extension}`, type, text);
      announcement.say(`Saved as ${title}`);
    } catch (error) {
      setProblem(error instanceof AdminRefusal ? error.message : "The server does not answer.");
    }
  };
  return (
    <>
      {formats.map((format) => (
        <button
          key={format.name}
          type="button"
          class="quiet"
          disabled={ids.length === 0}
          title={`${countInWords(ids.length, "request")}; keys and cookies are masked`}
          onClick={() => void save(format)}
        >
          Save {subject} as {format.title}
        </button>
      ))}
      {problem !== "" && <p class="banner wrong">{problem}</p>}
    </>
  );
}

/** A button that opens and closes the choices of what to export. It closes with Escape, and when the focus leaves it. */
export function ExportMenu({ children }: { readonly children: ComponentChildren }): VNode {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = (): void => menu.current?.removeAttribute("open");
  return (
    <details
      ref={menu}
      class="menu"
      onKeyDown={({ key }) => {
        if (key !== "Escape") return;
        close();
        menu.current?.querySelector("summary")?.focus();
      }}
      onFocusOut={({ relatedTarget }) => {
        if (relatedTarget instanceof Node && !menu.current?.contains(relatedTarget)) close();
      }}
    >
      <summary>Export</summary>
      <div class="stack">{children}</div>
    </details>
  );
}

/** One HAR file of several. */
function oneHar(texts: readonly string[]): string {
  const [first = "", ...others] = texts;
  if (others.length === 0) return first;
  const files = texts.map((text) => JSON.parse(text) as { readonly log: { readonly entries: readonly object[] } });
  return JSON.stringify({ log: { ...files[0]?.log, entries: files.flatMap(({ log }) => log.entries) } });
}
