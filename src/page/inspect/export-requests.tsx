import type { ComponentChildren, VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { AdminRefusal, askAdmin } from "../api/call-api.ts";
import { announcement } from "../parts/changing.ts";
import { saveFile } from "../parts/save-file.ts";
import { countInWords } from "../parts/count-in-words.ts";

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
  const [note, setNote] = useState("");
  const save = async ({ name, title, extension, type }: (typeof formats)[number]): Promise<void> => {
    setNote("");
    try {
      const texts: string[] = [];
      for (let at = 0; at < ids.length; at += maxIds) texts.push(await exported(name, ids.slice(at, at + maxIds)));
      const { text, count } = name === "har" ? joinedHars(texts) : joinedRecordings(texts);
      if (count > 0) saveFile(`${subject.replaceAll(" ", "-")}.${extension}`, type, text);
      announcement.say(count > 0 ? `Saved as ${title}` : "Not saved");
      if (count < ids.length)
        setNote(
          `${countInWords(ids.length - count, "request was", "requests were")} left out: without an answer, or too long to be kept completely.`,
        );
    } catch (error) {
      setNote(error instanceof AdminRefusal ? error.message : "The server does not answer.");
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
      {note !== "" && <p class="note">{note}</p>}
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

/** Returns "" if none of the requests can be exported. */
async function exported(format: string, ids: readonly string[]): Promise<string> {
  const query = new URLSearchParams([["format", format], ...ids.map((id): [string, string] => ["id", id])]);
  try {
    return await (await askAdmin(`requests/export?${query.toString()}`, {})).text();
  } catch (error) {
    if (error instanceof AdminRefusal && error.status === 409) return "";
    throw error;
  }
}

interface Joined {
  readonly text: string;
  /** The number of requests. */
  readonly count: number;
}

function joinedRecordings(texts: readonly string[]): Joined {
  const text = texts.join("");
  return { text, count: text.split("\n").length - 1 };
}

function joinedHars(texts: readonly string[]): Joined {
  const logs = texts
    .filter((text) => text !== "")
    .map((text) => (JSON.parse(text) as { readonly log: { readonly entries: readonly object[] } }).log);
  const entries = logs.flatMap((log) => log.entries);
  return { text: JSON.stringify({ log: { ...logs[0], entries } }), count: entries.length };
}
