import { Readable } from "node:stream";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type * as Undici from "undici";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

/** Names and first answers of the internet, which no test may ask. */
const world = vi.hoisted(() => ({
  addresses: new Map<string, string[][]>(),
  lookedUp: [] as string[],
  redirects: new Map<string, string>(),
  asked: [] as string[],
}));
vi.mock("node:dns", async (original) => ({
  ...(await original<object>()),
  lookup(name: string, _options: object, callback: (error: null, found: object[]) => void) {
    world.lookedUp.push(name);
    const answers = world.addresses.get(name) ?? [];
    const found = (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
    callback(
      null,
      found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  },
}));
vi.mock("undici", async (original) => {
  const undici = await original<typeof Undici>();
  return {
    ...undici,
    async request(url: URL, options: Parameters<typeof undici.request>[1]) {
      world.asked.push(url.href);
      const location = world.redirects.get(url.href);
      if (location === undefined) return undici.request(url, options);
      return { statusCode: 302, headers: { location }, body: Readable.from([]) };
    },
  };
});
const { downloadImage } = await import("../../src/engines/upstream/background/download-image.ts");

let reached = 0;
const inside = createServer((_request, response) => {
  reached++;
  response.end();
});
let port = 0;
beforeEach(async () => {
  await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
  ({ port } = inside.address() as AddressInfo);
});
afterEach(() => {
  inside.close();
  world.addresses.clear();
  world.redirects.clear();
  [world.lookedUp.length, world.asked.length, reached] = [0, 0, 0];
});

test.each([
  ["this machine", () => `http://127.0.0.1:${port}/`],
  ["this machine in the form of IPv6", () => `http://[::ffff:127.0.0.1]:${port}/`],
  ["the cloud's own address", () => "http://169.254.169.254/latest/meta-data"],
  ["the anycast network of 6to4", () => "http://192.88.99.1/"],
  ["a name of this machine", () => `http://inside.test:${port}/`],
])("a redirect to %s is not followed", async (_, target) => {
  world.addresses.set("inside.test", [["127.0.0.1"]]);
  world.redirects.set("http://images.test/a.png", target());
  await expect(downloadImage("http://images.test/a.png")).rejects.toThrow("is not a public address");
  expect(reached).toBe(0);
});

// A check of its own would look the name up once more than the connection does, and a name may have another address each time.
test("a name is looked up once, for the connection itself, so that no other address can follow a check (DNS rebinding)", async () => {
  world.addresses.set("rebound.test", [["127.0.0.1"], ["93.184.215.14"]]);
  await expect(downloadImage(`http://rebound.test:${port}/a.png`)).rejects.toThrow("is not a public address");
  expect(world.lookedUp).toEqual(["rebound.test"]);
  expect(reached).toBe(0);
});

test.each([
  [["93.184.215.14", "127.0.0.1"]],
  [["2606:2800:21f::1", "::1"]],
  [["::ffff:127.0.0.1"]],
  [["fe80::1"]],
  [["192.88.99.7"]],
])("a name with the addresses %j is refused as a whole", async (addresses) => {
  world.addresses.set("mixed.test", [addresses]);
  await expect(downloadImage(`http://mixed.test:${port}/a.png`)).rejects.toThrow("is not a public address");
  expect(reached).toBe(0);
});

/** What shows that the tests above can fail. */
test("where private addresses are allowed, the redirect is followed", async () => {
  world.addresses.set("inside.test", [["127.0.0.1"]]);
  world.redirects.set("http://images.test/a.png", `http://inside.test:${port}/`);
  const download = downloadImage("http://images.test/a.png", { allowPrivateAddresses: true });
  await expect(download).rejects.toThrow("no PNG");
  expect(reached).toBe(1);
});
