import { AwsV4Signer } from "aws4fetch";
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import { isObject } from "../../wire/core/json.ts";
import {
  type Command,
  credentialFailure,
  type Expiring,
  Renewed,
  renewalWarning,
  type RunCommand,
  withoutSecret,
} from "./credential.ts";
import type { Credential } from "./options.ts";

/* Requests to AWS are signed (Signature Version 4) with keys that are found where AWS's own programs find them. */

interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

interface AwsAuth {
  readonly name: string;
  readonly url: string;
  readonly region?: string | undefined;
  readonly service: string;
  readonly profile?: string | undefined;
  readonly command?: Command | undefined;
  readonly run: RunCommand;
  readonly log?: LogListener | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws an Error if the region is not known. */
export function awsCredential(auth: AwsAuth, environment: Environment = process.env, now = Date.now): Credential {
  const { name, service, profile, log } = auth;
  const region = auth.region ?? regionOf(auth.url) ?? environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"];
  if (region === undefined)
    throw new Error(`${name}: auth has no region. Set region, such as us-east-1, or AWS_REGION.`);
  const keys = new Renewed(
    () =>
      findKeys(auth, environment).catch((error: Error) => {
        throw credentialFailure(name, error.message);
      }),
    renewalWarning(log),
    now,
  );
  return {
    id: JSON.stringify(["aws", region, service, profile]),
    async authorize({ method, origin, path, headers, body }) {
      const datetime = new Date(now()).toISOString().replace(/[:-]|\.\d{3}/g, "");
      const { accessKeyId, secretAccessKey, sessionToken } = await keys.get();
      const signer = new AwsV4Signer({
        method,
        url: origin + path,
        accessKeyId,
        secretAccessKey,
        service,
        region,
        datetime,
        ...(body !== undefined && { body }),
        ...(sessionToken !== undefined && { sessionToken }),
      });
      // Only what belongs to the signature is signed: a proxy may change other headers.
      return { ...headers, ...Object.fromEntries((await signer.sign()).headers) };
    },
    refused: (status) => (status === 401 || status === 403) && keys.refused(),
    hiddenIn: (text) => withoutSecret(withoutSecret(text, keys.last?.secretAccessKey), keys.last?.sessionToken),
  };
}

/** The region in the host of a URL, such as `bedrock-runtime.us-east-1.amazonaws.com`. */
function regionOf(url: string): string | undefined {
  const [, region] = /(?:^|\.)([a-z]{2}(?:-[a-z]+)+-\d)\.(?:amazonaws\.com|api\.aws)/.exec(new URL(url).hostname) ?? [];
  return region;
}

/** In the order of AWS's SDKs: a command, the environment, the shared files, the container's address. Rejects with an Error. */
async function findKeys({ profile, command, run }: AwsAuth, environment: Environment): Promise<Expiring<AwsKeys>> {
  if (command) return keysIn(await run(command), "the command");
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = environment;
  if (profile === undefined && accessKeyId && secretAccessKey)
    return lasting({ accessKeyId, secretAccessKey, sessionToken: environment["AWS_SESSION_TOKEN"] });
  const name = profile ?? environment["AWS_PROFILE"] ?? "default";
  const shared = (file: string): string => join(homedir(), ".aws", file);
  const config = await textOf(environment["AWS_CONFIG_FILE"] ?? shared("config"));
  const credentials = await textOf(environment["AWS_SHARED_CREDENTIALS_FILE"] ?? shared("credentials"));
  const found = {
    ...sectionOf(config, name === "default" ? name : `profile ${name}`),
    ...sectionOf(credentials, name),
  };
  const { aws_access_key_id: id, aws_secret_access_key: secret, credential_process: program } = found;
  if (id && secret)
    return lasting({ accessKeyId: id, secretAccessKey: secret, sessionToken: found["aws_session_token"] });
  if (program) return keysIn(await run(program.split(" ").filter((part) => part !== "")), "credential_process");
  const relative = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"];
  const address = relative ? `http://169.254.170.2${relative}` : environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"];
  if (profile === undefined && address) return keysIn(await ofContainer(address, environment), address);
  throw new Error(
    `there are no keys of AWS in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in the profile '${name}' of ~/.aws, or at a container's address.`,
  );
}

/** Keys that do not expire by themselves: they are read again when they are refused. */
function lasting(value: AwsKeys): Expiring<AwsKeys> {
  return { value, expiresAt: Infinity };
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw new Error(`${file} cannot be read: ${error.message}`);
  });
}

/** The settings of a section of an INI file. */
function sectionOf(text: string, name: string): Readonly<Record<string, string>> {
  const settings: Record<string, string> = {};
  let isWanted = false;
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line.startsWith("[")) isWanted = line === `[${name}]`;
    const at = line.indexOf("=");
    if (isWanted && at > 0 && !line.startsWith("#")) settings[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return settings;
}

async function ofContainer(address: string, environment: Environment): Promise<string> {
  const file = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"];
  const token = file ? (await textOf(file)).trim() : environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"];
  const answer = await fetch(address, {
    ...(token && { headers: { authorization: token } }),
    signal: AbortSignal.timeout(5000),
  });
  if (!answer.ok) throw new Error(`${address} answered with status ${answer.status}.`);
  return answer.text();
}

/** Keys as commands and containers give them. Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html. */
function keysIn(text: string, origin: string): Expiring<AwsKeys> {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new Error(`${origin} did not give JSON.`);
  }
  const { AccessKeyId, SecretAccessKey, SessionToken, Token = SessionToken, Expiration } = isObject(given) ? given : {};
  if (typeof AccessKeyId !== "string" || typeof SecretAccessKey !== "string")
    throw new Error(`${origin} gave no AccessKeyId and SecretAccessKey.`);
  const value = {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    ...(typeof Token === "string" && { sessionToken: Token }),
  };
  const expiresAt = typeof Expiration === "string" ? Date.parse(Expiration) : Infinity;
  return { value, expiresAt: Number.isNaN(expiresAt) ? Infinity : expiresAt };
}
