import type { TargetedKeyboardEvent, VNode } from "preact";
import { useCallback, useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { CopyButton } from "../parts/copy-button.tsx";
import { useRowsInSight } from "../parts/rows-in-sight.ts";
import { SearchBar } from "../parts/search-bar.tsx";
import { ExactNumber, jsonText, scalarJson } from "../parts/json-text.ts";
import { findInJson, isFolding, isShort, JsonRows, parsePath, pathOf, pathText, sizeOf } from "./json-tree.ts";
import type { JsonRow } from "./json-tree.ts";
import { countInWords } from "../parts/count-in-words.ts";

/** Of a row, in CSS pixels; page.css has the same. */
const rowHeight = 24;
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

/** A JSON value as a tree. Only rows in sight are rendered. */
export function JsonTree({ label, value, place = "", isSmall = false }: Properties): VNode {
  const id = useId();
  const typed = useRef({ text: "", at: 0 });
  const tree = useMemo(() => openedTree(value, isSmall), [value]);
  const find = useCallback((query: string) => findInJson(value, query), [value]);
  const [current, setCurrent] = useState<JsonRow>();
  const [, renderAgain] = useState({});
  const rows = tree.all;
  const selected = current && rows.includes(current) ? current : rows[0];
  const selectedPlace = selected ? rows.indexOf(selected) : -1;
  const { box, onScroll, places, reveal, placeAfter } = useRowsInSight(rows.length, rowHeight, selectedPlace);
  const select = (row: JsonRow | undefined): void => {
    setCurrent(row);
    if (row) reveal(tree.all.indexOf(row));
  };
  useEffect(() => select(place === "" ? undefined : tree.reveal(parsePath(place))), [tree, place]);

  const fold = (row: JsonRow, isOpen: boolean): void => {
    if (isOpen) tree.open(row);
    else tree.close(row);
    renderAgain({});
  };
  const move = (event: TargetedKeyboardEvent<HTMLDivElement>): void => {
    if (!selected || event.altKey) return;
    const { key } = event;
    const at = selectedPlace;
    if ((event.ctrlKey || event.metaKey) && key === "c" && String(getSelection()) === "") {
      event.preventDefault();
      void navigator.clipboard?.writeText(textOf(selected));
      return;
    }
    if (event.ctrlKey || event.metaKey) return;
    const to = placeAfter(key);
    if (to !== undefined) select(rows[to]);
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
  return (
    <div class="json-tree">
      {!isSmall && (
        <>
          <SearchBar
            label={`Search: ${label}`}
            field="Search names and values"
            find={find}
            onFound={(path) => select(tree.reveal(path))}
          />
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
        onScroll={onScroll}
        onKeyDown={move}
      >
        <div class="json-space" role="presentation" style={{ height: `${rows.length * rowHeight}px` }}>
          {places.map((at) => {
            const row = rows[at];
            return (
              row && (
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
              )
            );
          })}
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
