import type { ComponentChildren, TargetedKeyboardEvent, VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Models } from "../api/models.ts";
import { announcement, useChanges } from "../parts/changing.ts";
import type { Comparison } from "./comparison.ts";
import type { Conversation } from "./conversation.ts";
import { attachmentOf } from "./attach-file.ts";
import { FileList } from "./question-view.tsx";
import type { Settings } from "./settings.ts";
import type { AttachedFile } from "./turn.ts";

interface Properties {
  readonly conversation: Conversation | Comparison;
  /** There is a model to ask. */
  readonly ready: boolean;
  readonly settings: Settings;
  /** Another model that is asked, too. */
  readonly otherModel?: string;
  readonly models: Models;
  readonly children?: ComponentChildren;
}

/** Where a question is written. */
export function Composer({ conversation, ready, settings, otherModel, models, children }: Properties): VNode {
  useChanges(conversation);
  useChanges(settings);
  const [text, setText] = useState(conversation.draft);
  const [images, setImages] = useState<readonly string[]>([]);
  const [files, setFiles] = useState<readonly AttachedFile[]>([]);
  /** Why files were not attached, a sentence each. */
  const [refusals, setRefusals] = useState<readonly string[]>([]);
  conversation.draft = text;
  const area = useRef<HTMLTextAreaElement>(null);
  const { running, problem } = conversation;
  // A page that was just opened, or a new conversation, is there to be written to. On a phone, the focus would open the keyboard.
  useLayoutEffect(() => {
    const isTaken = document.activeElement !== null && document.activeElement !== document.body;
    if (!isTaken && matchMedia("(pointer: fine)").matches) area.current?.focus({ preventScroll: true });
  }, []);

  const ask = (): void => {
    // As it is now: what was rendered may be a frame old, and a key follows a click within less.
    const written = area.current?.value ?? "";
    if (conversation.running || !ready || (written.trim() === "" && images.length + files.length === 0)) return;
    if (!conversation.ask(written, images, files)) return;
    setText("");
    setImages([]);
    setFiles([]);
    setRefusals([]);
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>): void => {
    // Enter also ends a composed character, which is no question yet.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    ask();
  };
  const add = async (chosen: FileList | null | undefined): Promise<void> => {
    // What is dropped or pasted is there during the event only.
    const all = [...(chosen ?? [])];
    // The one that can read less, of two that are compared.
    const compared = [settings.model, otherModel ?? settings.model];
    const find = (known: ReadonlySet<string>): string | undefined => compared.find((model) => known.has(model));
    const [blind, local] = [find(models.blind), find(models.local)];
    const reader = { takesImages: blind === undefined, takesDocuments: local === undefined };
    const [said, refused]: [string[], string[]] = [[], []];
    for (const file of all) {
      try {
        const model = (file.type.startsWith("image/") ? blind : local) ?? settings.model;
        const attached = await attachmentOf(file, { ...reader, model });
        if ("image" in attached) setImages((before) => [...before, attached.image]);
        else setFiles((before) => [...before, attached.file]);
        said.push(file.name);
      } catch (error) {
        refused.push(`${file.name} was not attached: ${error instanceof Error ? error.message : String(error)}.`);
      }
    }
    setRefusals(refused);
    const told = [...(said.length > 0 ? [`Attached ${said.join(", ")}.`] : []), ...refused];
    if (told.length > 0) announcement.say(told.join(" "));
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (running) conversation.stop();
        else ask();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void add(event.dataTransfer?.files);
      }}
    >
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      {refusals.map((refusal, at) => (
        <p key={at} class="banner wrong">
          {refusal}
        </p>
      ))}
      {images.length > 0 && (
        <ul class="images">
          {images.map((url, at) => (
            <li key={at}>
              <img src={url} alt={`Attached image ${at + 1}`} />
              <button
                type="button"
                class="quiet"
                aria-label={`Remove image ${at + 1}`}
                onClick={() => setImages(images.filter((_, other) => other !== at))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <FileList files={files} onRemove={(at) => setFiles(files.filter((_, other) => other !== at))} />
      <textarea
        ref={area}
        rows={2}
        dir="auto"
        aria-label="Your message"
        placeholder="Write a message…"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={onKeyDown}
        onPaste={(event) => void add(event.clipboardData?.files)}
      />
      <div class="row">
        <label class="button quiet">
          Attach files
          <input
            class="unseen"
            type="file"
            multiple
            onChange={({ currentTarget }) => {
              void add(currentTarget.files).then(() => (currentTarget.value = ""));
            }}
          />
        </label>
        {children}
        <span class="hint">
          <kbd>Enter</kbd> asks, <kbd>Shift Enter</kbd> begins a line, <kbd>Esc</kbd> stops
        </span>
        <button type="submit" class="main" aria-disabled={!running && !ready}>
          {running ? "Stop" : "Ask"}
        </button>
      </div>
    </form>
  );
}
