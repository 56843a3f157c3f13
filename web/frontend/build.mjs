/**
 * Bundle the pages' scripts and styles into web/static.
 *
 * Every file directly in src/ or styles/ is an entry with an output of its name: src/door.ts becomes
 * door.js. Files in subfolders, and those whose names start with "_", are only imported. Also
 * written: Swagger UI with its licence (docs/), the documentation as docs/render.py rendered it
 * (documents/), the QR reader's WebAssembly, and the door app's icons. Scripts, styles and
 * WebAssembly are also written compressed; the server sends the smallest that the browser accepts.
 * Files are replaced atomically, because a box may be running; outdated files are deleted.
 */
import { build } from "esbuild";
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { icon } from "./icons.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "static");

const SWAGGER_FILES = [
  "swagger-ui.css",
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "LICENSE",
  "NOTICE",
];

/** The entries of a folder: the paths of its files with this ending, without those of "_". */
async function entries(folder, ending) {
  const found = await readdir(join(here, folder), { withFileTypes: true }).catch((error) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  return found
    .filter((file) => file.isFile() && file.name.endsWith(ending))
    .filter((file) => !file.name.startsWith("_") && !file.name.endsWith(".d.ts"))
    .map((file) => join(here, folder, file.name))
    .sort();
}

/** Bundle these entries: [path under web/static, contents] of each. */
async function bundled(entryPoints) {
  if (entryPoints.length === 0) return [];
  const { outputFiles } = await build({
    entryPoints,
    outdir: out,
    entryNames: "[name]",
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    charset: "utf8",
    target: ["es2022", "chrome100", "firefox100", "safari15.4"],
    loader: { ".svg": "dataurl" },
    logLevel: "warning",
  });
  return outputFiles.map((file) => [relative(out, file.path), file.contents]);
}

/** The files of Swagger UI, with the licence and notice that every copy needs. */
async function swagger() {
  const home = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  return Promise.all(
    SWAGGER_FILES.map(async (name) => [join("docs", name), await readFile(join(home, name))]),
  );
}

/** The documentation, which docs/render.py has written to build/documents. */
async function documents() {
  const home = join(here, "..", "..", "build", "documents");
  const found = await readdir(home, { recursive: true, withFileTypes: true });
  return Promise.all(
    found
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map(async (path) => [join("documents", relative(home, path)), await readFile(path)]),
  );
}

/** The WebAssembly of the QR reader. */
async function reader() {
  const path = createRequire(import.meta.url).resolve("zxing-wasm/reader/zxing_reader.wasm");
  return [["zxing_reader.wasm", await readFile(path)]];
}

/** A file, and its compressed forms if it is a script, a style or WebAssembly. */
function withCompressed([name, contents]) {
  if (!/\.(js|css|wasm)$/.test(name)) return [[name, contents]];
  const best = { [constants.BROTLI_PARAM_QUALITY]: contents.length > 200_000 ? 9 : 11 };
  return [
    [name, contents],
    [`${name}.gz`, gzipSync(contents, { level: 9 })],
    [`${name}.br`, brotliCompressSync(contents, { params: best })],
  ];
}

async function write(name, contents) {
  const target = join(out, name);
  const aside = `${target}.${process.pid}.part`;
  await mkdir(dirname(target), { recursive: true });
  await writeFile(aside, contents);
  await rename(aside, target);
}

/** Delete files that an earlier build wrote and this one did not, but no packed clients. */
async function removeOthers(kept) {
  const present = await readdir(out, { recursive: true, withFileTypes: true });
  for (const file of present.filter((entry) => entry.isFile())) {
    const path = join(file.parentPath, file.name);
    const name = relative(out, path);
    if (!kept.has(name) && !name.startsWith("clients/")) await rm(path, { force: true });
  }
}

const files = new Map([
  // Built separately: a script and a style of the same name have the same entry name.
  ...(await bundled(await entries("src", ".ts"))),
  ...(await bundled(await entries("styles", ".css"))),
  ...(await swagger()),
  ...(await documents()),
  ...(await reader()),
  ...[192, 512].map((size) => [`door-${size}.png`, icon(size)]),
].flatMap(withCompressed));
for (const [name, contents] of files) await write(name, contents);
await removeOthers(new Set(files.keys()));
const bytes = [...files.values()].reduce((sum, contents) => sum + contents.length, 0);
console.log(`${files.size} files in web/static, ${(bytes / 1e6).toFixed(1)} MB`);
