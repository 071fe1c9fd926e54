import { expect, test } from "vitest";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { Delivery } from "./delivery.ts";

const text = (value: string): GenerationEvent => ({ type: "text-delta", choice: 0, text: value });
const done: GenerationEvent = { type: "end", end: { kind: "done" } };

test("all events since the last batch are one batch, and null follows the end", async () => {
  const delivery = new Delivery(() => {});
  delivery.push([text("a")], 1);
  delivery.push([text("b")], 1);
  expect(await delivery.next()).toEqual([text("a"), text("b")]);
  const waiting = delivery.next();
  delivery.push([text("c"), done], 1);
  expect(await waiting).toEqual([text("c"), done]);
  expect(await delivery.next()).toBeNull();
});

test("tokens are taken with their batch, or immediately if they have no events", () => {
  const reported: number[] = [];
  const delivery = new Delivery((tokens) => reported.push(tokens));
  for (let i = 0; i < 20; i++) delivery.push([text("x")], 1);
  expect(reported).toEqual([]);
  void delivery.next();
  expect(reported).toEqual([20]);
  for (let i = 0; i < 40; i++) delivery.push([], 1);
  expect(reported).toEqual([20, 16, 16]);
});

test("no event follows an end", async () => {
  const delivery = new Delivery(() => {});
  delivery.end({ kind: "client-gone" });
  delivery.push([text("late")], 1);
  delivery.end({ kind: "engine-error", failure: { kind: "internal", message: "late", status: 500 } });
  expect(await delivery.next()).toEqual([{ type: "end", end: { kind: "client-gone" } }]);
  expect(await delivery.next()).toBeNull();
});
