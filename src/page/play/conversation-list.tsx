import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { announcement, useChanges } from "../parts/changing.ts";
import { countInWords } from "../parts/count-in-words.ts";
import { saveFile } from "../parts/save-file.ts";
import { CopyAsDialog } from "./answer-view.tsx";
import type { Conversation } from "./conversation.ts";
import type { ConversationRecord } from "./conversation-store.ts";
import type { Found } from "./conversation-search.ts";
import type { Conversations } from "./conversations.ts";
import type { Settings } from "./settings.ts";
import type { AnswerTurn } from "./turn.ts";

interface Properties {
  readonly conversations: Conversations;
  readonly settings: Settings;
  readonly keyNeeded: boolean;
  /** A conversation was chosen, or a new one begun. */
  readonly onChosen: () => void;
}

/** Number of conversations that are listed before "Show more". */
const listed = 100;

/** Largest file that is imported, in bytes: a browser's strings end at about 500 million characters. */
const maxFileSize = 256 * 1024 * 1024;

/** The list of conversations, with search, import and export. */
export function ConversationList({ conversations, settings, keyNeeded, onChosen }: Properties): VNode {
  useChanges(conversations);
  const [sought, setSought] = useState("");
  const [limit, setLimit] = useState(listed);
  const [problem, setProblem] = useState("");
  const [copied, setCopied] = useState<{ readonly conversation: Conversation; readonly answer: AnswerTurn }>();
  const results = useSearch(conversations, sought);
  const { list, current } = conversations;
  const shown = results?.found ?? list.map((record): Found => ({ record }));

  const importFiles = async (files: FileList | null): Promise<void> => {
    setProblem("");
    for (const file of Array.from(files ?? [])) {
      if (file.size > maxFileSize) {
        const text = `${file.name} was not imported. The file is larger than 256 MB.`;
        setProblem(text);
        announcement.say(text);
      } else if (await conversations.imports.add(file.name, file)) onChosen();
    }
  };
  const exportAll = async (records: readonly ConversationRecord[]): Promise<void> => {
    setProblem("");
    try {
      const { exportedText } = await import("./conversation-file.ts");
      const filed = [];
      for (const { id } of records) {
        const conversation = await conversations.get(id);
        if (conversation) filed.push({ record: conversation.record, turns: conversation.tree.all });
      }
      const only = records.length === 1 ? records[0] : undefined;
      saveFile(only ? `${fileName(only.title)}.json` : "conversations.json", "application/json", exportedText(filed));
    } catch (error) {
      setProblem(`Nothing was exported: ${error instanceof Error ? error.message : String(error)}.`);
    }
  };
  const copyAs = async (id: string): Promise<void> => {
    const conversation = await conversations.get(id);
    const answer = conversation?.turns.findLast((turn) => turn.kind === "answer");
    if (conversation && answer?.kind === "answer") setCopied({ conversation, answer });
    else setProblem("This conversation has no request to copy.");
  };
  return (
    <>
      {(conversations.address !== "play" || list.length > 0) && (
        <div class="stack">
          {conversations.address !== "play" && <NewConversation conversations={conversations} onChosen={onChosen} />}
          {list.length > 0 && (
            <input
              type="search"
              aria-label="Search conversations"
              dir="auto"
              placeholder="Search"
              value={sought}
              onInput={({ currentTarget }) => setSought(currentTarget.value)}
            />
          )}
        </div>
      )}
      {results && (
        <p class="note" role="status">
          {results.searching
            ? "Searching…"
            : shown.length === 0
              ? `No conversation contains “${sought.trim()}”.`
              : shown.length === 1
                ? "1 conversation found."
                : `${shown.length} conversations found.`}
        </p>
      )}
      {list.length === 0 && <p class="note">Conversations are kept in this browser, and listed here.</p>}
      <ul class="conversations">
        {shown.slice(0, limit).map((found) => (
          <Row
            key={found.record.id}
            found={found}
            conversations={conversations}
            isCurrent={found.record.id === current.id}
            onChosen={onChosen}
            onExport={() => void exportAll([found.record])}
            onCopyAs={() => void copyAs(found.record.id)}
          />
        ))}
      </ul>
      {shown.length > limit && (
        <button type="button" class="quiet" onClick={() => setLimit(limit * 2)}>
          Show more ({shown.length - limit})
        </button>
      )}
      <Notices conversations={conversations} />
      {problem !== "" && <p class="banner wrong">{problem}</p>}
      <div class="row">
        <label class="button quiet">
          Import…
          <input
            class="unseen"
            type="file"
            accept=".json,application/json"
            multiple
            onChange={({ currentTarget }) => {
              void importFiles(currentTarget.files).then(() => (currentTarget.value = ""));
            }}
          />
        </label>
        {list.length > 0 && (
          <button type="button" class="quiet" onClick={() => void exportAll(list)}>
            Export all
          </button>
        )}
      </div>
      {copied && (
        <CopyAsDialog
          body={copied.conversation.bodyOf(copied.answer)}
          table={settings.table}
          keyNeeded={keyNeeded}
          onClose={() => setCopied(undefined)}
        />
      )}
    </>
  );
}

/** Begins a conversation before the address changes, so that what is typed next goes into it. */
export function NewConversation({ conversations, onChosen }: Pick<Properties, "conversations" | "onChosen">): VNode {
  const begin = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", "#play");
    conversations.begin();
    onChosen();
  };
  return (
    <a class="button" href="#play" onClick={begin}>
      New conversation
    </a>
  );
}

/** Why conversations are not kept, and what was deleted and can be restored. */
export function Notices({ conversations }: { readonly conversations: Conversations }): VNode | null {
  useChanges(conversations);
  const { problem } = conversations;
  const { current: importing, problem: importProblem } = conversations.imports;
  const { all: deleted } = conversations.deletions;
  const undo = useRef<HTMLButtonElement>(null);
  const count = useRef(deleted.length);
  useLayoutEffect(() => {
    // The button that deleted is gone: the focus would be lost.
    if (deleted.length > count.current) undo.current?.focus();
    count.current = deleted.length;
  }, [deleted.length]);
  const close = (action: () => void): void => {
    const place = undo.current?.closest("dialog, .sidebar") ?? document.querySelector(".talk");
    action();
    place?.querySelector<HTMLElement>("a, textarea")?.focus();
  };
  const last = deleted.at(-1);
  if (problem === "" && importProblem === "" && !importing && !last) return null;
  return (
    <div class="notices">
      {importing && (
        <div class="banner">
          <label>
            Importing {importing.name}
            {importing.total > 0 &&
              `: ${importing.done.toLocaleString("en")} of ${countInWords(importing.total, "conversation")}`}
            <progress max={Math.max(1, importing.total)} {...(importing.total > 0 && { value: importing.done })} />
          </label>
          <p class="note">If you leave this page, it continues when you are back.</p>
        </div>
      )}
      {importProblem !== "" && (
        <div class="banner wrong row">
          <span>{importProblem}</span>
          <button type="button" class="quiet" onClick={() => conversations.imports.dismissProblem()}>
            Dismiss
          </button>
        </div>
      )}
      {problem !== "" && <p class="banner">{problem}</p>}
      {last && (
        <div class="banner row">
          <span>{last.text}</span>
          <button ref={undo} type="button" onClick={() => close(() => void conversations.deletions.undo())}>
            Undo
          </button>
          <button type="button" class="quiet" onClick={() => close(() => conversations.deletions.forget())}>
            Dismiss
          </button>
        </div>
      )}
    </div>
  );
}

interface RowProperties {
  readonly found: Found;
  readonly conversations: Conversations;
  readonly isCurrent: boolean;
  readonly onChosen: () => void;
  readonly onExport: () => void;
  readonly onCopyAs: () => void;
}

function Row({ found, conversations, isCurrent, onChosen, onExport, onCopyAs }: RowProperties): VNode {
  const { record, turn, before, match, after } = found;
  const { id, title } = record;
  const [isOpen, setOpen] = useState(false);
  const [renamed, setRenamed] = useState<string>();
  const input = useRef<HTMLInputElement>(null);
  const link = useRef<HTMLAnchorElement>(null);
  const renaming = useRef(false);
  const renames = renamed !== undefined;
  useLayoutEffect(() => input.current?.select(), [renames]);
  const actionsId = `actions-${id}`;
  const act = (action: () => void) => (): void => {
    setOpen(false);
    action();
  };
  const endRenaming = (title: string): void => {
    // An input that is removed loses the focus: that would end the renaming a second time.
    if (!renaming.current) return;
    renaming.current = false;
    setRenamed(undefined);
    void conversations.rename(id, title);
    requestAnimationFrame(() => link.current?.focus());
  };
  const beginRenaming = (): void => {
    renaming.current = true;
    setRenamed(title);
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLAnchorElement>): void => {
    if (event.key === "F2") beginRenaming();
    else if (event.key === "Delete") void conversations.delete(id);
    else return;
    event.preventDefault();
  };
  if (renames)
    return (
      <li>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            endRenaming(renamed);
          }}
        >
          <input
            ref={input}
            aria-label={`New title of ${title}`}
            dir="auto"
            value={renamed}
            maxLength={200}
            onInput={({ currentTarget }) => setRenamed(currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "Escape") return;
              // It would also close the drawer, or stop the answer.
              event.preventDefault();
              event.stopPropagation();
              endRenaming("");
            }}
            onBlur={() => endRenaming(renamed)}
          />
        </form>
      </li>
    );
  return (
    <li>
      <div class="conversation">
        <a
          ref={link}
          href={`#play/${id}`}
          dir="auto"
          aria-current={isCurrent ? "page" : undefined}
          onKeyDown={onKeyDown}
          onClick={({ ctrlKey, metaKey, shiftKey }) => {
            if (ctrlKey || metaKey || shiftKey) return;
            if (turn !== undefined) void conversations.reveal(id, turn);
            onChosen();
          }}
        >
          {title}
        </a>
        {conversations.receives(id) && <span class="chip">answering</span>}
        <button
          type="button"
          class="quiet"
          aria-label={`Actions for ${title}`}
          aria-expanded={isOpen}
          aria-controls={isOpen ? actionsId : undefined}
          onClick={() => setOpen(!isOpen)}
        >
          ⋯
        </button>
      </div>
      {match !== undefined && (
        <p class="note" dir="auto">
          {before}
          <mark>{match}</mark>
          {after}
        </p>
      )}
      {isOpen && (
        <div class="row actions" id={actionsId} role="group" aria-label={`Actions for ${title}`}>
          <button type="button" class="quiet" onClick={act(beginRenaming)}>
            Rename
          </button>
          <button type="button" class="quiet" onClick={act(onCopyAs)}>
            Copy as…
          </button>
          <button type="button" class="quiet" onClick={act(onExport)}>
            Export
          </button>
          <button type="button" class="quiet" onClick={act(() => void conversations.delete(id))}>
            Delete
          </button>
        </div>
      )}
    </li>
  );
}

/** Searches again whenever the text or the conversations change. Returns undefined without a text. */
function useSearch(
  conversations: Conversations,
  sought: string,
): { readonly found: readonly Found[]; readonly searching: boolean } | undefined {
  const [results, setResults] = useState<{ readonly found: readonly Found[]; readonly searching: boolean }>();
  const { list } = conversations;
  useEffect(() => {
    if (sought.trim() === "") return setResults(undefined);
    const controller = new AbortController();
    const found: Found[] = [];
    let frame = 0;
    const show = (searching: boolean): void => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        if (!controller.signal.aborted) setResults({ found: [...found], searching });
      });
    };
    void conversations
      .search(sought, controller.signal, (one) => {
        found.push(one);
        show(true);
      })
      .then(
        () => show(false),
        () => show(false),
      );
    return () => controller.abort();
  }, [sought, list]);
  return results;
}

/** A title as the name of a file. */
function fileName(title: string): string {
  const name = title.replaceAll(/[^\p{L}\p{N}]+/gu, "-").replaceAll(/^-+|-+$/g, "");
  return name.slice(0, 60).toLowerCase() || "conversation";
}
