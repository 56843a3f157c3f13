/**
 * Bundles the pages' scripts and styles into web/static.
 *
 * Every file directly in src/ or styles/ becomes one output of its name: src/door.ts is door.js,
 * styles/guest.css is guest.css. A file in a subfolder, or whose name starts with "_", is a part:
 * it reaches the browser only through the entry that imports it. Swagger UI goes to docs/ with its
 * licence, and docs/ with its pictures and example programs to documents/. Files are written aside and
 * renamed, so that a running box never serves half of one; what no source produces any more is
 * removed. The code reader's WebAssembly and the door's icons come along, and what is worth it
 * compressed too: the server sends the smallest that is taken.
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

/** The entries of one folder: path of each file with this ending that is not a part. */
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

/** The bundled text of these entries, by the path it will have under web/static. */
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

/** Swagger UI as published, licence and notice included: they travel with every copy. */
async function swagger() {
  const home = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));
  return Promise.all(
    SWAGGER_FILES.map(async (name) => [join("docs", name), await readFile(join(home, name))]),
  );
}

/** docs/ as it stands: the pages, their pictures and the example programs, not what makes them. */
async function documents() {
  const home = join(here, "..", "..", "docs");
  const found = await readdir(home, { recursive: true, withFileTypes: true });
  return Promise.all(
    found
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => /\.(md|png|svg|webp|jpe?g)$|\/examples\/\w+\/[^/.][^/]*$/.test(path))
      .filter((path) => !path.includes("__pycache__"))
      .map(async (path) => [join("documents", relative(home, path)), await readFile(path)]),
  );
}

/** The WebAssembly that reads codes at the door. */
async function reader() {
  const path = createRequire(import.meta.url).resolve("zxing-wasm/reader/zxing_reader.wasm");
  return [["zxing_reader.wasm", await readFile(path)]];
}

/** A file and, where that saves something, its compressed forms. */
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

/** Removes what an earlier build left and this one does not produce. */
async function removeOthers(kept) {
  const present = await readdir(out, { recursive: true, withFileTypes: true });
  for (const file of present.filter((entry) => entry.isFile())) {
    const path = join(file.parentPath, file.name);
    if (!kept.has(relative(out, path))) await rm(path, { force: true });
  }
}

const files = new Map([
  // Apart, because a style and a script of one name are two outputs of one name.
  ...(await bundled(await entries("src", ".ts"))),
  ...(await bundled(await entries("styles", ".css"))),
  ...(await swagger()),
  ...(await documents()),
  ...(await reader()),
  ...[192, 512].map((size) => [`door-${size}.png`, icon(size)]),
].flatMap(withCompressed));
for (const [name, contents] of files) await write(name, contents);
await removeOthers(new Set(files.keys()));
for (const [name, contents] of files) {
  if (/\.(gz|br)$/.test(name)) continue;
  console.log(`  static/${name}  ${(contents.length / 1024).toFixed(1)} kB`);
}
