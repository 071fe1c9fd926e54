import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A certificate for localhost that signs itself, as PEM texts; null, and one line that says so, where there is no openssl. */
export function selfSigned(commonName = "localhost"): { key: string; cert: string } | null {
  const folder = mkdtempSync(join(tmpdir(), "truewire-certificate-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  try {
    const names = ["-subj", `/CN=${commonName}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const files = ["-days", "2", "-keyout", key, "-out", cert];
    execFileSync("openssl", ["req", "-x509", ...curve, ...names, ...files], { stdio: "ignore" });
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } catch {
    console.log("skipped: there is no openssl to make a certificate with");
    return null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
