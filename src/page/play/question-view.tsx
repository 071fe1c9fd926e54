import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "./conversation.ts";
import { countInWords } from "../parts/count-in-words.ts";
import type { AttachedFile, QuestionTurn } from "./turn.ts";
import { Versions } from "./versions.tsx";

interface FileProperties {
  readonly files: readonly AttachedFile[];
  /** Absent: they stay. */
  readonly onRemove?: (at: number) => void;
}

/** The files of a question. */
export function FileList({ files, onRemove }: FileProperties): VNode | null {
  if (files.length === 0) return null;
  return (
    <ul class="files" aria-label="Attached files">
      {files.map((file, at) => (
        <li key={at} class="row">
          <bdi>{file.name}</bdi>
          <span class="note">
            {"text" in file
              ? countInWords(file.text.length, "character")
              : `${Math.ceil((file.data.length * 3) / 4 / 1024).toLocaleString("en")} KiB`}
          </span>
          {onRemove && (
            <button type="button" class="quiet" aria-label={`Remove ${file.name}`} onClick={() => onRemove(at)}>
              Remove
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

/** What a person said, which can be said in other words. */
export function QuestionView({
  turn,
  conversation,
}: {
  readonly turn: QuestionTurn;
  readonly conversation: Conversation;
}): VNode {
  const { id, role, text, images, files = [] } = turn;
  const [edited, setEdited] = useState<string>();
  const area = useRef<HTMLTextAreaElement>(null);
  const edits = edited !== undefined;
  useLayoutEffect(() => area.current?.focus(), [edits]);
  useEffect(() => setEdited(undefined), [id]);
  const askInstead = (): void => {
    if (conversation.askInstead(id, edited ?? text)) setEdited(undefined);
  };
  return (
    <article class="turn question" data-turn={id}>
      <header>
        <h2>{role === "system" ? "System" : "You"}</h2>
        <Versions turn={turn} conversation={conversation} />
        {!edits && role !== "system" && (
          <button type="button" class="quiet" onClick={() => setEdited(text)}>
            Edit
          </button>
        )}
      </header>
      {images.length > 0 && (
        <ul class="images">
          {images.map((url, at) => (
            <li key={at}>
              {url.startsWith("data:") ? (
                <img src={url} alt={`Attached image ${at + 1}`} />
              ) : (
                <a href={url} target="_blank" rel="noopener noreferrer">
                  Image {at + 1}
                </a>
              )}
            </li>
          ))}
        </ul>
      )}
      <FileList files={files} />
      {edits ? (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            askInstead();
          }}
        >
          <textarea
            ref={area}
            rows={2}
            dir="auto"
            aria-label="Your message, edited"
            value={edited}
            onInput={({ currentTarget }) => setEdited(currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") {
                event.preventDefault();
                setEdited(undefined);
              }
              if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
              event.preventDefault();
              askInstead();
            }}
          />
          <div class="row end">
            <button type="button" onClick={() => setEdited(undefined)}>
              Cancel
            </button>
            <button type="submit" class="main">
              Ask again
            </button>
          </div>
        </form>
      ) : (
        text !== "" && (
          <div class="said" dir="auto">
            {text}
          </div>
        )
      )}
    </article>
  );
}
