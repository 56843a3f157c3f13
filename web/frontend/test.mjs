/** Test the scripts that need no page: bundle each file in test/, then run them with `node --test`. */
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const outdir = mkdtempSync(join(tmpdir(), "venuebox-scripts-"));
try {
  const names = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.mjs"));
  await build({
    entryPoints: names.map((name) => join(here, "test", name)),
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    logLevel: "warning",
  });
  const files = names.map((name) => join(outdir, name));
  const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...files], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(outdir, { recursive: true });
}
