import type { TargetedKeyboardEvent, VNode } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { CopyButton } from "../parts/copy-button.tsx";
import {
  ExactNumber,
  findInJson,
  isFolding,
  isShort,
  jsonText,
  JsonRows,
  parsePath,
  pathOf,
  pathText,
  scalarJson,
  sizeOf,
} from "./json-tree.ts";
import type { JsonPath, JsonRow } from "./json-tree.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** Of a row, in CSS pixels; page.css has the same. */
const rowHeight = 24;
/** Number of rows that are rendered above and below the visible ones. */
const margin = 10;
/** Matches are counted up to this number. */
const maxMatches = 10_000;
/** A text is shown up to this length, in characters. */
const maxShown = 200;

interface Properties {
  readonly label: string;
  readonly value: unknown;
  /** Opened and selected at first: `messages[1].content`. */
  readonly place?: string;
  /** Without a search and buttons, for a small value. */
  readonly isSmall?: boolean;
}

/** A JSON value as a tree. Only rows in sight are rendered. Source of the keys: WAI-ARIA Authoring Practices, "Tree View". */
export function JsonTree({ label, value, place = "", isSmall = false }: Properties): VNode {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const typed = useRef({ text: "", at: 0 });
  const tree = useMemo(() => openedTree(value, isSmall), [value]);
  const [current, setCurrent] = useState<JsonRow>();
  const [sight, setSight] = useState({ top: 0, height: 400 });
  const [, renderAgain] = useState({});
  const look = (): void => {
    if (box.current) setSight({ top: box.current.scrollTop, height: box.current.clientHeight });
  };
  useEffect(() => {
    const observer = new ResizeObserver(look);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const select = (row: JsonRow | undefined): void => {
    setCurrent(row);
    const top = row ? tree.all.indexOf(row) * rowHeight : -1;
    const { current: element } = box;
    if (top < 0 || !element) return;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight;
  };
  useEffect(() => {
    const row = place === "" ? undefined : tree.reveal(parsePath(place));
    setCurrent(undefined);
    if (row) requestAnimationFrame(() => select(row));
  }, [tree, place]);

  const rows = tree.all;
  const selected = current && rows.includes(current) ? current : rows[0];
  const fold = (row: JsonRow, isOpen: boolean): void => {
    if (isOpen) tree.open(row);
    else tree.close(row);
    renderAgain({});
  };
  const move = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    if (!selected || event.altKey) return;
    const { key } = event;
    const at = rows.indexOf(selected);
    if ((event.ctrlKey || event.metaKey) && key === "c" && String(getSelection()) === "") {
      event.preventDefault();
      void navigator.clipboard?.writeText(textOf(selected));
      return;
    }
    if (event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(sight.height / rowHeight) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: Infinity }[
      key
    ];
    if (to !== undefined) select(rows[Math.max(0, Math.min(rows.length - 1, to))]);
    else if (key === "ArrowRight" && isFolding(selected))
      if (selected.isOpen) select(rows[at + 1]);
      else fold(selected, true);
    else if (key === "ArrowLeft")
      if (selected.isOpen) fold(selected, false);
      else select(selected.parent ?? selected);
    else if (key === "Enter" || (key === " " && typed.current.text === "")) fold(selected, !selected.isOpen);
    else if (key === "*") {
      for (const row of rows.filter(({ parent }) => parent === selected.parent)) tree.open(row);
      renderAgain({});
    } else if (key.length === 1) select(typeAhead(rows, at, typed.current, key, event.timeStamp));
    else return;
    event.preventDefault();
  };
  const first = Math.max(0, Math.floor(sight.top / rowHeight) - margin);
  const end = Math.min(rows.length, Math.ceil((sight.top + sight.height) / rowHeight) + margin);
  const shown = rows.slice(first, end).map((row, index) => ({ row, place: first + index }));
  const selectedPlace = selected ? rows.indexOf(selected) : -1;
  if (selected && (selectedPlace < first || selectedPlace >= end)) shown.push({ row: selected, place: selectedPlace });
  return (
    <div class="json-tree">
      {!isSmall && (
        <>
          <JsonSearch value={value} onFound={(path) => select(tree.reveal(path))} />
          <div class="row">
            <button
              type="button"
              class="quiet"
              onClick={() => {
                const [root] = tree.all;
                if (root) tree.openAll(root);
                renderAgain({});
              }}
            >
              Open all
            </button>
            <button
              type="button"
              class="quiet"
              onClick={() => {
                tree.closeAll();
                renderAgain({});
              }}
            >
              Close all
            </button>
            <CopyButton label="Copy value" text={() => (selected ? textOf(selected) : "")} />
            <CopyButton label="Copy path" text={() => (selected ? pathText(pathOf(selected)) : "")} />
            <code class="json-path">{selected ? pathText(pathOf(selected)) : ""}</code>
          </div>
        </>
      )}
      <div
        ref={box}
        class={isSmall ? "json-rows small" : "json-rows"}
        role="tree"
        aria-label={label}
        tabIndex={0}
        aria-activedescendant={selected && `${id}-${selectedPlace}`}
        onScroll={look}
        onKeyDown={move}
      >
        <div class="json-space" role="presentation" style={{ height: `${rows.length * rowHeight}px` }}>
          {shown.map(({ row, place: at }) => (
            <div
              key={at}
              id={`${id}-${at}`}
              role="treeitem"
              class="json-row"
              aria-level={row.depth + 1}
              aria-selected={row === selected}
              {...(isFolding(row) && { "aria-expanded": row.isOpen })}
              style={{ transform: `translateY(${at * rowHeight}px)`, paddingLeft: `${row.depth + 1.2}rem` }}
              onClick={() => {
                if (row === selected || !isFolding(row) || !isSmall) select(row);
                if (isFolding(row) && String(getSelection()) === "") fold(row, !row.isOpen);
              }}
            >
              <RowContent row={row} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** A small value is all open if it is short. In characters of JSON. */
const maxOpened = 1000;

function openedTree(value: unknown, isSmall: boolean): JsonRows {
  const tree = new JsonRows(value);
  const [root] = tree.all;
  if (root && isSmall && isShort(value, maxOpened)) tree.openAll(root);
  return tree;
}

function RowContent({ row }: { readonly row: JsonRow }): VNode {
  const { key, value, isLine, isOpen } = row;
  if (isLine === true) return <span class="json-line">{String(value)}</span>;
  const isFolded = typeof value === "object" && value !== null && !(value instanceof ExactNumber);
  return (
    <>
      {key !== undefined && <span class={typeof key === "number" ? "json-index" : "json-key"}>{key}: </span>}
      {isFolded ? (
        <span class="json-count">{summaryOf(value, sizeOf(row), isOpen)}</span>
      ) : typeof value === "string" ? (
        <span class="json-text">
          {isOpen ? countInWords(value.length, "character") : JSON.stringify(value.slice(0, maxShown))}
          {!isOpen && value.length > maxShown && ` … ${countInWords(value.length, "character")}`}
        </span>
      ) : (
        <span class="json-scalar">{scalarJson(value)}</span>
      )}
    </>
  );
}

/** Members that say what an object is, in the APIs and in general. */
const describing = ["type", "role", "name", "id", "title"];

function summaryOf(value: object, size: number, isOpen: boolean): string {
  const count = Array.isArray(value) ? countInWords(size, "item") : countInWords(size, "member");
  if (isOpen || Array.isArray(value)) return Array.isArray(value) ? `[${count}]` : `{${count}}`;
  const members = describing.flatMap((name) => {
    const member: unknown = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
    return typeof member === "string" && member.length < 60 ? [`${name}: ${member}`] : [];
  });
  return members.length === 0 ? `{${count}}` : `{${count}} ${members.slice(0, 3).join(", ")}`;
}

/** What is copied of a row: the text of a string, else its JSON. */
function textOf({ value }: JsonRow): string {
  return typeof value === "string" ? value : jsonText(value);
}

/** Time between two letters that belong together, in milliseconds. */
const typingMs = 700;

/** The next row whose name begins with what was typed. */
function typeAhead(
  rows: readonly JsonRow[],
  from: number,
  typed: { text: string; at: number },
  letter: string,
  now: number,
): JsonRow | undefined {
  typed.text = now - typed.at > typingMs ? letter : typed.text + letter;
  typed.at = now;
  const start = typed.text.length === 1 ? from + 1 : from;
  const matches = ({ key, isLine }: JsonRow): boolean =>
    isLine !== true && String(key).toLowerCase().startsWith(typed.text.toLowerCase());
  return rows.slice(start).find(matches) ?? rows.find(matches) ?? rows[from];
}

interface SearchProperties {
  readonly value: unknown;
  readonly onFound: (path: JsonPath) => void;
}

/** A search in all values, those that are folded included. Enter goes to the next match, Shift+Enter to the previous one. */
function JsonSearch({ value, onFound }: SearchProperties): VNode {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<readonly JsonPath[]>([]);
  const [at, setAt] = useState(-1);
  const [isDone, setDone] = useState(true);
  useEffect(() => {
    setAt(-1);
    setFound([]);
    if (query === "") return;
    const leaving = new AbortController();
    void search(value, query, leaving.signal, (paths, done) => {
      setFound(paths);
      setDone(done);
    });
    return () => leaving.abort();
  }, [value, query]);
  const go = (step: number): void => {
    if (found.length === 0) return;
    const next = (Math.max(at, step < 0 ? 0 : -1) + step + found.length) % found.length;
    setAt(next);
    const path = found[next];
    if (path) onFound(path);
  };
  const count = `${found.length.toLocaleString("en")}${found.length >= maxMatches ? "+" : ""}`;
  return (
    <div class="row json-search" role="search">
      <input
        type="search"
        aria-label="Search names and values"
        placeholder="Search names and values"
        value={query}
        onInput={({ currentTarget }) => setQuery(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          go(event.shiftKey ? -1 : 1);
        }}
      />
      <button type="button" class="quiet" disabled={found.length === 0} onClick={() => go(-1)}>
        Previous
      </button>
      <button type="button" class="quiet" disabled={found.length === 0} onClick={() => go(1)}>
        Next
      </button>
      <span class="note" role="status">
        {query === "" ? "" : !isDone && found.length === 0 ? "Searching…" : `${at < 0 ? "" : `${at + 1} of `}${count}`}
        {query !== "" && isDone && found.length === 0 && " matches"}
      </span>
    </div>
  );
}

/** Reports the matches as they are found, and lets the page do other things between. */
async function search(
  value: unknown,
  query: string,
  signal: AbortSignal,
  report: (paths: readonly JsonPath[], done: boolean) => void,
): Promise<void> {
  const found: JsonPath[] = [];
  for (const path of findInJson(value, query)) {
    if (path) found.push(path);
    if (found.length >= maxMatches) break;
    if (path) continue;
    report([...found], false);
    await new Promise((resolve) => setTimeout(resolve));
    if (signal.aborted) return;
  }
  report(found, true);
}
