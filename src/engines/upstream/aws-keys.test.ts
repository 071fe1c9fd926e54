import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { chatSource } from "../../wire/apis/chat/port.ts";
import { awsCredential } from "./aws-keys.ts";

const id = "AKIDEXAMPLE";
const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const environment = { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret };
const folder = mkdtempSync(join(tmpdir(), "truewire-aws-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (output: object) => () => Promise.resolve(JSON.stringify(output));
const noCommand = (): Promise<string> => Promise.reject(new Error("there is no command here"));
const auth = {
  name: "up",
  url: "https://example.amazonaws.com",
  region: "us-east-1",
  service: "service",
  run: noCommand,
};
// The time of AWS's test suite: 20150830T123600Z.
const now = (): number => Date.UTC(2015, 7, 30, 12, 36);

// Source: AWS's Signature Version 4 test suite (aws-sig-v4-test-suite), which is signed with these example keys.
describe("AWS's test suite", () => {
  test.each([
    ["get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"],
    ["post-vanilla", "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
    [
      "get-vanilla-query-order-key-case",
      "GET",
      "/?Param2=value2&Param1=value1",
      "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ],
  ])("%s", async (_, method, path, signature) => {
    const credential = awsCredential(auth, environment, now);
    const request = { method, origin: "https://example.amazonaws.com", path, headers: { accept: "a" } };
    expect(await credential.authorize(request, chatSource)).toMatchObject({
      accept: "a",
      "x-amz-date": "20150830T123600Z",
      authorization: `AWS4-HMAC-SHA256 Credential=${id}/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=${signature}`,
    });
  });
});

describe("where keys are found", () => {
  const config = join(folder, "config");
  const credentials = join(folder, "credentials");
  writeFileSync(
    config,
    "[default]\nregion = a\n\n[profile work]\naws_access_key_id = no\n[profile tool]\ncredential_process = tool  --json\n",
  );
  writeFileSync(
    credentials,
    "# a comment\n[default]\r\naws_access_key_id = of-file\r\naws_secret_access_key = a=b+c/==\r\naws_session_token = tok\r\n[work]\naws_access_key_id=of-work\naws_secret_access_key=s\n",
  );
  const files = { AWS_CONFIG_FILE: config, AWS_SHARED_CREDENTIALS_FILE: credentials };
  const printed = { Version: 1, AccessKeyId: "of-tool", SecretAccessKey: "s", SessionToken: "t" };

  async function found(more: object, given: Record<string, string>): Promise<[string | undefined, string | undefined]> {
    const request = { method: "POST", origin: "https://example.amazonaws.com", path: "/", headers: {}, body: "{}" };
    const headers = await awsCredential({ ...auth, ...more }, given, now).authorize(request, chatSource);
    return [/Credential=([^/]*)/.exec(headers["authorization"] ?? "")?.[1], headers["x-amz-security-token"]];
  }

  test.each([
    ["the environment", {}, { ...files, ...environment, AWS_SESSION_TOKEN: "x" }, id, "x"],
    ["the shared file", {}, files, "of-file", "tok"],
    ["a profile", { profile: "work" }, { ...files, ...environment }, "of-work", undefined],
    ["a profile of the environment", {}, { ...files, AWS_PROFILE: "work" }, "of-work", undefined],
    ["credential_process", { profile: "tool", run: run(printed) }, files, "of-tool", "t"],
    ["a command", { command: ["tool"], run: run(printed) }, { ...files, ...environment }, "of-tool", "t"],
  ])("%s", async (_, more, given, key, token) => {
    expect(await found(more, given)).toEqual([key, token]);
  });

  test("a container's address, with the token of a file", async () => {
    const asked: (string | undefined)[] = [];
    const container = createServer((request, response) => {
      asked.push(request.headers.authorization);
      response.end(JSON.stringify({ AccessKeyId: "of-container", SecretAccessKey: "s", Token: "t" }));
    });
    await new Promise<void>((resolve) => container.listen(0, "127.0.0.1", resolve));
    const tokenFile = join(folder, "token");
    writeFileSync(tokenFile, "secret-of-the-container\n");
    const address = `http://127.0.0.1:${(container.address() as AddressInfo).port}/creds`;
    const given = {
      AWS_CONFIG_FILE: join(folder, "none"),
      AWS_SHARED_CREDENTIALS_FILE: join(folder, "none"),
      AWS_CONTAINER_CREDENTIALS_FULL_URI: address,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
    };
    expect(await found({}, given)).toEqual(["of-container", "t"]);
    expect(asked).toEqual(["secret-of-the-container"]);
    container.close();
  });

  test.each([
    [{ profile: "missing" }, files, "no keys of AWS in the environment"],
    [{ command: ["tool"], run: async () => "no JSON" }, {}, "the command did not give JSON"],
    [{ command: ["tool"], run: run({ AccessKeyId: 1 }) }, {}, "gave no AccessKeyId"],
  ])("%j: the failure says what is missing", async (more, given, words) => {
    await expect(found(more, given)).rejects.toThrow(words);
    await expect(found(more, given)).rejects.toThrow("the upstream up");
  });
});

test("the region is that of the URL, or of the environment; without any, the start fails", async () => {
  const request = { method: "POST", origin: "https://a", path: "/", headers: {} };
  const regionOf = async (url: string, given: Record<string, string> = {}): Promise<string | undefined> => {
    const headers = await awsCredential(
      { ...auth, region: undefined, url },
      { ...environment, ...given },
      now,
    ).authorize(request, chatSource);
    return /\/20150830\/([^/]*)\//.exec(headers["authorization"] ?? "")?.[1];
  };
  expect(await regionOf("https://bedrock-runtime.us-gov-west-1.amazonaws.com")).toBe("us-gov-west-1");
  expect(await regionOf("https://bedrock-mantle.eu-west-3.api.aws/v1")).toBe("eu-west-3");
  expect(await regionOf("https://proxy.example", { AWS_REGION: "ap-south-1" })).toBe("ap-south-1");
  await expect(regionOf("https://proxy.example")).rejects.toThrow("has no region");
});
