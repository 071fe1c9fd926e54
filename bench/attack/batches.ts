import type { Attack } from "./attack.ts";
import { type Attacked, attackOn, chat, outcomeOf } from "./gateway.ts";

/** Uploads a file. Resolves to the status and the id. */
async function upload({ server }: Attacked, text: string, purpose: string): Promise<{ status: string; id: string }> {
  const form = new FormData();
  form.set("purpose", purpose);
  form.set("file", new Blob([text]), "a.jsonl");
  const { status, text: body } = await outcomeOf(fetch(`${server.url}/v1/files`, { method: "POST", body: form }));
  return { status, id: /"id":"([^"]+)"/.exec(body)?.[1] ?? "" };
}

/** Runs a batch over a text to its end. Resolves to its status and the codes of its errors. */
async function ended(attacked: Attacked, text: string): Promise<string> {
  const { server } = attacked;
  const { id } = await upload(attacked, text, "batch");
  const body = JSON.stringify({ input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" });
  const headers = { "content-type": "application/json" };
  const created = await outcomeOf(fetch(`${server.url}/v1/batches`, { method: "POST", headers, body }));
  const batchId = /"id":"([^"]+)"/.exec(created.text)?.[1] ?? "";
  for (const until = performance.now() + 60_000; performance.now() < until;) {
    const { text: batch } = await outcomeOf(fetch(`${server.url}/v1/batches/${batchId}`));
    const { status, errors } = JSON.parse(batch) as { status: string; errors: { data: { code: string }[] } | null };
    if (["failed", "completed"].includes(status)) {
      const codes = new Set(errors?.data.map(({ code }) => code));
      return `${status}${codes.size > 0 ? ` (${[...codes].join(", ")}, ${errors?.data.length} listed)` : ""}`;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return "no end";
}

/** A batch that must fail. */
function batchAttack(name: string, text: () => string): Attack {
  return attackOn(name, {}, async (attacked) => {
    const outcome = await ended(attacked, text());
    attacked.expect(outcome.startsWith("failed"), `The batch is ${outcome}.`);
    return outcome;
  });
}

/** What files and batches of one client do to the others. */
export const attacks: readonly Attack[] = [
  batchAttack("a batch of a million lines of 3 bytes", () => "{}\n".repeat(1_000_000)),
  batchAttack("a batch whose lines are lists in lists, 200,000 deep", () => `${"[".repeat(200_000)}\n`.repeat(50)),
  batchAttack(
    "a batch of one line of 30 MB",
    () => `{"custom_id":"a","method":"GET","url":"","body":["${"x".repeat(30_000_000)}"]}`,
  ),
  batchAttack("a batch of 30 MB of blanks", () => " ".repeat(30_000_000)),
  attackOn("an upload of 64 MB", {}, async (attacked) => {
    const { status } = await upload(attacked, "x".repeat(64_000_000), "user_data");
    attacked.expect(status === "413" || status.startsWith("cut"), `The upload got ${status}.`);
    return status;
  }),
  attackOn("a request that names a file of 1 MB a thousand times", {}, async (attacked) => {
    const { id } = await upload(attacked, "x".repeat(1_000_000), "user_data");
    const parts = Array.from({ length: 1000 }, () => ({ type: "file", file: { file_id: id } }));
    const { status } = await outcomeOf(fetch(`${attacked.server.url}/v1/chat/completions`, chat("up", parts)));
    attacked.expect(status === "413", `The request got ${status}.`);
    return status;
  }),
];
