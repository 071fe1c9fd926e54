import fc from "fast-check";
import { expect, test } from "vitest";
import { MapAssembled, MapKeyspace } from "../../../test/support/map-keyspaces.ts";
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
    await expect(changeConversation(each, id, { items: [item(2)] })).rejects.toThrow(
      "Conversation with id 'conv_1' not found.",
    );
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
