import type { ComponentChildren, TargetedKeyboardEvent, VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { announcement, useChanges } from "../parts/changing.ts";
import type { Comparison } from "./comparison.ts";
import type { Conversation } from "./conversation.ts";
import type { Settings } from "./settings.ts";

interface Properties {
  readonly conversation: Conversation | Comparison;
  /** There is a model to ask. */
  readonly ready: boolean;
  readonly settings: Settings;
  /** The models that take no images, as far as is known: another one that does not says so. */
  readonly blind: ReadonlySet<string>;
  readonly children?: ComponentChildren;
}

/** Where a question is written. */
export function Composer({ conversation, ready, settings, blind, children }: Properties): VNode {
  useChanges(conversation);
  useChanges(settings);
  const takesImages = !blind.has(settings.model);
  const [text, setText] = useState(conversation.draft);
  const [images, setImages] = useState<readonly string[]>([]);
  conversation.draft = text;
  const area = useRef<HTMLTextAreaElement>(null);
  const { running, problem } = conversation;

  const ask = (): void => {
    // As it is now: what was rendered may be a frame old, and a key follows a click within less.
    const written = area.current?.value ?? "";
    if (conversation.running || !ready || (written.trim() === "" && images.length === 0)) return;
    if (!conversation.ask(written, images)) return;
    setText("");
    setImages([]);
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLTextAreaElement>): void => {
    // Enter also ends a composed character, which is no question yet.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    ask();
  };
  const add = async (files: FileList | null | undefined): Promise<void> => {
    const urls = await imageUrls(files);
    if (urls.length === 0) return;
    if (!takesImages) return conversation.refuse(`${settings.model} takes no images`);
    setImages((before) => [...before, ...urls]);
    announcement.say(urls.length === 1 ? "Image attached." : `${urls.length} images attached.`);
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
      <textarea
        ref={area}
        rows={2}
        aria-label="Your message"
        placeholder="Write a message…"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={onKeyDown}
        onPaste={(event) => void add(event.clipboardData?.files)}
      />
      <div class="row">
        {takesImages && (
          <label class="button quiet">
            Attach image
            <input
              class="unseen"
              type="file"
              accept="image/*"
              multiple
              onChange={({ currentTarget }) => {
                void add(currentTarget.files).then(() => (currentTarget.value = ""));
              }}
            />
          </label>
        )}
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

/** The images among files, as `data:` URLs. */
export async function imageUrls(files: FileList | null | undefined): Promise<string[]> {
  const images = [...(files ?? [])].filter(({ type }) => type.startsWith("image/"));
  return Promise.all(images.map(dataUrl));
}

function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error ?? new Error("The file cannot be read.")));
    reader.readAsDataURL(file);
  });
}
