import { build, type Plugin } from 'esbuild';
import { readFile, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Each module finds its SQL files as if it was not bundled. */
const ownUrls: Plugin = {
  name: 'own-urls',
  setup(bundler) {
    bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const own = JSON.stringify(pathToFileURL(path).href);
      return { loader: 'ts', contents: text.replaceAll('import.meta.url', own) };
    });
  },
};

/** Packages with a native binary stay outside, as in the command line. */
const NATIVE = ['@duckdb/node-bindings', '@resvg/resvg-js', '@css-inline/css-inline'];
const PACKAGES = fileURLToPath(new URL('../node_modules', import.meta.url));

/** A test program as one file of JavaScript in a new directory: loading each module of the source would take longer. */
export async function compiled(program: URL, directory: string): Promise<string> {
  const outfile = join(directory, basename(program.pathname).replace(/ts$/, 'mjs'));
  await symlink(PACKAGES, join(directory, 'node_modules'));
  await build({
    entryPoints: [fileURLToPath(program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    external: NATIVE,
    plugins: [ownUrls],
    banner: {
      js: `import{createRequire as requireFrom}from'node:module';const require=requireFrom(import.meta.url);`,
    },
  });
  return outfile;
}
