import { createHash, createHmac } from "node:crypto";
import type { ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { createServer } from "../../src/serve/app/create-server.ts";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import type { UpstreamModel } from "../../src/serve/config/model-schema.ts";
import { startScripted } from "./scripted-server.ts";
import type { ScriptedServer } from "./scripted-server.ts";

export type Sent = ScriptedServer["requests"][number];
export interface Answer {
  status?: number;
  type?: string;
  headers?: Record<string, string>;
  body: string | Uint8Array;
}

/** A gateway over a vendor that answers so, for the rest of the test. */
export async function gateway(
  answer: (sent: Sent) => Answer,
  upstream: (origin: string) => Omit<UpstreamModel, "kind">,
): Promise<{ server: TruewireServer; vendor: ScriptedServer }> {
  const vendor = await startScripted((response: ServerResponse) => {
    const sent = vendor.requests.at(-1);
    const answered: Answer = sent ? answer(sent) : { status: 500, body: "" };
    const { status = 200, type = "application/json", headers, body } = answered;
    response.writeHead(status, { "content-type": type, ...headers });
    response.end(body);
  });
  const model = { kind: "upstream" as const, name: "up", ...upstream(vendor.url.replace(/\/v1$/, "")) };
  const server = await createServer({ port: 0, logLevel: "silent", models: [model] });
  onTestFinished(async () => {
    await Promise.all([server.close(0), vendor.close()]);
  });
  return { server, vendor };
}

export async function ask(
  { url }: TruewireServer,
  path: string,
  more: object = {},
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "claude", max_tokens: 9, messages: [{ role: "user", content: "Hello" }], ...more }),
  });
  return { status: response.status, text: await response.text() };
}

export const keys = { AWS_ACCESS_KEY_ID: "AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY: "secret-of-the-test-0123456789" };

/** Whether a request is signed, by the steps of AWS's documentation (reference_sigv-create-signed-request.html). */
export function isSigned({ path, headers, body }: Sent, service: string, region: string): boolean {
  const [, scope = "", names = "", signature = ""] =
    /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/(\S+), SignedHeaders=(\S+), Signature=(\w+)$/.exec(
      headers.authorization ?? "",
    ) ?? [];
  const date = String(headers["x-amz-date"]);
  const hash = (text: string): string => createHash("sha256").update(text).digest("hex");
  const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
  const encoded = path.split("?", 1)[0]?.split("/").map(encodeURIComponent).join("/");
  const signed = names.split(";").map((name) => `${name}:${String(headers[name])}\n`);
  const canonical = ["POST", encoded, "", signed.join(""), names, hash(JSON.stringify(body))].join("\n");
  const day = date.slice(0, 8);
  if (scope !== `${day}/${region}/${service}/aws4_request` || !names.split(";").includes("host")) return false;
  const parts = [day, region, service, "aws4_request"];
  const key = parts.reduce<string | Buffer>(hmac, `AWS4${keys.AWS_SECRET_ACCESS_KEY}`);
  return signature === hmac(key, ["AWS4-HMAC-SHA256", date, scope, hash(canonical)].join("\n")).toString("hex");
}
