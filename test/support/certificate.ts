import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A certificate for localhost that signs itself, as PEM texts, for so many days from now on; with a negative number it has expired. Null,
 * and one line that says so, where there is no openssl.
 */
export function selfSigned(commonName = "localhost", days = 2): { key: string; cert: string } | null {
  const folder = mkdtempSync(join(tmpdir(), "truewire-certificate-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  try {
    const [asked, extensions] = [join(folder, "asked.pem"), join(folder, "extensions")];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const subject = ["-subj", `/CN=${commonName}`];
    execFileSync("openssl", ["req", "-new", ...curve, ...subject, "-keyout", key, "-out", asked], { stdio: "ignore" });
    writeFileSync(extensions, "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:TRUE\n");
    const signing = ["-signkey", key, "-days", String(days), "-extfile", extensions];
    execFileSync("openssl", ["x509", "-req", "-in", asked, ...signing, "-out", cert], { stdio: "ignore" });
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } catch {
    console.log("skipped: there is no openssl to make a certificate with");
    return null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
