import fc from "fast-check";
import { expect, test } from "vitest";
import { MapAssembled, MapKeyspace } from "../../../../test/support/map-keyspaces.ts";
import type { Assembled, Keyspaces } from "../port-state.ts";
import {
  changeConversation,
  deleteConversation,
  findConversation,
  putConversation,
  requireConversation,
} from "./stored-conversation.ts";

const id = "conv_1";

function keyspacesWith(stored: MapKeyspace, assembled: Assembled = new MapAssembled()): Keyspaces {
  return { stored, temporary: new MapKeyspace(), assembled, ofConnection: false };
}

const item = (number: number): { id: string; text: string } => ({ id: `item_${number}`, text: `é ${number}` });

test("a process that remembers a conversation has what another one reads, whatever others change", async () => {
  const change = fc.oneof(
    fc.array(fc.nat({ max: 9 }), { maxLength: 3 }).map((numbers) => ({ items: numbers.map(item) })),
    fc.nat({ max: 9 }).map((number) => ({ deleted: item(number).id })),
    fc.string().map((topic) => ({ metadata: { topic } })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(change, fc.boolean())), async (changes) => {
      const stored = new MapKeyspace();
      const remembering = keyspacesWith(stored);
      await putConversation(remembering, { id, created: 1 }, []);
      for (const [change, isRead] of changes) {
        await changeConversation(keyspacesWith(stored), id, change);
        if (!isRead) continue;
        const [known, again] = await Promise.all([
          requireConversation(remembering, id),
          requireConversation(keyspacesWith(stored), id),
          // Reads the same lines concurrently.
          requireConversation(remembering, id),
        ]);
        for (const before of [undefined, 0, 2])
          expect(known.history(before).items.toArray()).toEqual(again.history(before).items.toArray());
        expect([known.metadata, known.items, known.size]).toEqual([again.metadata, again.items, again.size]);
        for (let number = 0; number < 10; number++)
          expect(known.positionOf(item(number).id)).toBe(again.positionOf(item(number).id));
      }
    }),
  );
});

test("a deleted conversation is gone in every process, and an addition does not create it", async () => {
  const stored = new MapKeyspace();
  const [one, other] = [keyspacesWith(stored), keyspacesWith(stored)];
  await putConversation(one, { id, created: 1 }, [{ items: [item(1)] }]);
  for (const each of [one, other]) expect((await requireConversation(each, id)).items).toEqual([item(1)]);
  expect(await deleteConversation(one, id)).toBe(true);
  for (const each of [one, other]) {
    expect(await findConversation(each, id)).toBeUndefined();
    expect(await changeConversation(each, id, { items: [item(2)] })).toBe(false);
  }
  expect(stored.texts.size).toBe(0);
});

test("a line that a crash has torn is left out, and the lines after it are read", async () => {
  const stored = new MapKeyspace();
  const keyspaces = keyspacesWith(stored);
  await putConversation(keyspaces, { id, created: 1 }, [{ items: [item(1)] }]);
  await requireConversation(keyspaces, id);
  const [[key = "", text = ""] = []] = stored.texts;
  stored.texts.set(key, `${text}\n{"items":[{"id":"item_2"`);
  expect((await requireConversation(keyspaces, id)).items).toEqual([item(1)]);
  await changeConversation(keyspaces, id, { items: [item(3)] });
  for (const each of [keyspaces, keyspacesWith(stored)])
    expect((await requireConversation(each, id)).items).toEqual([item(1), item(3)]);
});

// The position of the next line was wrong, so that line was lost in the processes that remember the conversation.
test("a crash may tear a character", async () => {
  const lines = [`{"id":"${id}","created":1}\n`, `\n${JSON.stringify({ items: [item(1)] })}\n`].map((line) =>
    Buffer.from(line),
  );
  const stored = Object.assign(new MapKeyspace(), {
    readFrom: async (_key: string, from: number) => {
      const bytes = Buffer.concat(lines);
      return { text: bytes.subarray(from).toString(), size: bytes.length };
    },
  });
  const keyspaces = keyspacesWith(stored);
  expect((await requireConversation(keyspaces, id)).items).toEqual([item(1)]);
  lines.push(Buffer.concat([Buffer.from('\n{"items":[{"id":"'), Buffer.from("é").subarray(0, 1)]));
  for (const number of [3, 4]) {
    await requireConversation(keyspaces, id);
    lines.push(Buffer.from(`\n${JSON.stringify({ items: [item(number)] })}\n`));
    const { items } = await requireConversation(keyspaces, id);
    expect(items).toEqual((await requireConversation(keyspacesWith(stored), id)).items);
    expect(items.at(-1)).toEqual(item(number));
  }
});

// The others stayed in the list, and could be neither retrieved nor deleted.
test("a deletion removes all items with the id, and another one may be added", async () => {
  const keyspaces = keyspacesWith(new MapKeyspace());
  await putConversation(keyspaces, { id, created: 1 }, [{ items: [item(1), item(2), item(1)] }]);
  await changeConversation(keyspaces, id, { deleted: "item_1" });
  expect((await requireConversation(keyspaces, id)).history().items.toArray()).toEqual([item(2)]);
  await changeConversation(keyspaces, id, { items: [item(1)] });
  const found = await requireConversation(keyspaces, id);
  expect(found.history().items.toArray()).toEqual([item(2), item(1)]);
  expect(found.positionOf("item_1")).toBe(3);
});

test("a line that is read while it is written is read again when it is whole", async () => {
  const stored = new MapKeyspace();
  const keyspaces = keyspacesWith(stored);
  await putConversation(keyspaces, { id, created: 1 }, []);
  await requireConversation(keyspaces, id);
  await changeConversation(keyspaces, id, { items: [item(1)] });
  const [[key = "", whole = ""] = []] = stored.texts;
  stored.texts.set(key, whole.slice(0, -9));
  expect((await requireConversation(keyspaces, id)).items).toEqual([]);
  stored.texts.set(key, whole);
  expect((await requireConversation(keyspaces, id)).items).toEqual([item(1)]);
});

test("an addition to a long conversation reads only itself", async () => {
  const stored = new MapKeyspace();
  let read = 0;
  const keyspaces: Keyspaces = {
    ...keyspacesWith(stored),
    stored: Object.assign(new MapKeyspace(), {
      readFrom: async (key: string, from: number) => {
        const end = await stored.readFrom(key, from);
        read = end?.text.length ?? 0;
        return end;
      },
      append: (key: string, text: string) => stored.append(key, text),
    }),
  };
  await putConversation(keyspacesWith(stored), { id, created: 1 }, []);
  for (let number = 0; number < 200; number++) {
    await changeConversation(keyspaces, id, { items: [item(number)] });
    expect((await requireConversation(keyspaces, id)).history().items.length).toBe(number + 1);
    expect(read).toBeLessThan(100);
  }
});
