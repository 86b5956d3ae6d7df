/**
 * Bundles the command line into a directory of its own in dist/, or in the directory given: one file that every command
 * starts with, and chunks that commands load when they need them. Only packages with a native binary stay outside. Then
 * dist/cli.js is replaced, which starts the newest build: a command finds a whole one at any time, and a process that
 * runs loads the rest of its own. build/ has the separate modules, for tests that start their own programs. Types are not
 * checked here: `npm run check:types`.
 */
import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

// Whatever is bundled is a development dependency, as esbuild is. An installation without them does not fail.
const { build } = await import('esbuild').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  const isInstalling = process.env.npm_lifecycle_event === 'prepare';
  process.stderr.write(
    `Readership ${isInstalling ? 'was not' : 'cannot be'} built: npm left out the development dependencies, ` +
      'which the build needs (NODE_ENV=production or --omit=dev).\n' +
      'To install them and build: npm ci --include=dev. A machine that only runs Readership needs neither them nor ' +
      'the source: install the tarball of npm pack there, as README.md shows.\n',
  );
  process.exit(isInstalling ? 0 : 1);
});

const NATIVE = [
  '@duckdb/node-bindings',
  '@photostructure/sqlite',
  '@resvg/resvg-js',
  '@css-inline/css-inline',
];
const dist = process.argv[2] ?? 'dist';
/** Where this build is made, beside the finished ones. */
const outdir = join(dist, `.next-${process.pid}`);
const source = join(import.meta.dirname, 'src');

/** All chunks are in one directory, so each module keeps its original location, from which SQL files are found. */
const ownUrls = {
  name: 'own-urls',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const own = `./${relative(source, path).replaceAll('\\', '/')}`;
      const text = readFileSync(path, 'utf8');
      return {
        loader: 'ts',
        contents: text
          .replaceAll('import.meta.url', `new URL('${own}', import.meta.url).href`)
          // With a namespace import, only the parts that are used get into the bundle.
          .replace("import { z } from 'zod'", "import * as z from 'zod'"),
      };
    });
  },
};

/**
 * Only the parts of packages that are used. Of undici, those that `src/network.ts` imports, with every method that undici
 * itself gives a dispatcher: a proxy needs `connect`. Loading all of it, with `fetch`, WebSocket and mocks, takes 22 ms longer.
 */
const partsOfPackages = {
  name: 'parts-of-packages',
  setup({ onLoad }) {
    onLoad({ filter: /node_modules\/undici\/index\.js$/ }, () => ({
      contents: `
        import Dispatcher from './lib/dispatcher/dispatcher.js';
        import methods from './lib/api/index.js';
        export { default as Agent } from './lib/dispatcher/agent.js';
        export { default as Pool } from './lib/dispatcher/pool.js';
        export { default as ProxyAgent } from './lib/dispatcher/proxy-agent.js';
        Object.assign(Dispatcher.prototype, methods);`,
    }));
    // Handlebars replaces it, if it is missing, by a few lines that are faster.
    onLoad({ filter: /node_modules\/source-map\/source-map\.js$/ }, () => ({ contents: '' }));
  },
};

const output = {
  outdir,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  sourcemap: true,
  sourcesContent: false,
};

const bundled = { ...output, bundle: true, external: NATIVE, plugins: [ownUrls, partsOfPackages] };
/** CommonJS modules in a bundle call `require`, which ES modules lack. It searches for packages from `url`. */
const requireFrom = (url) => ({
  js: `import{createRequire as requireFrom}from'node:module';const require=requireFrom(${url});`,
});
mkdirSync(outdir, { recursive: true });
const { metafile } = await build({
  ...bundled,
  entryPoints: ['src/cli.ts'],
  splitting: true,
  chunkNames: '[name]-[hash]',
  // Parsing is a large part of a command's start-up time. Names are kept for stack traces.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  metafile: true,
  banner: requireFrom('import.meta.url'),
});
copyOthers(outdir);
await writeGenerated();
replace(join(dist, 'LICENSES.txt'), licenses(Object.keys(metafile.inputs)));
const id = finish();
// Only tests use them.
if (dist === 'dist') {
  await build({ ...output, outdir: 'build', entryPoints: ['src/**/*.ts'], outbase: 'src' });
  copyOthers('build');
}
removeOld(id);

/** What is read as a file, such as SQL. */
function copyOthers(directory) {
  cpSync('src', directory, { recursive: true, filter: (path) => !path.endsWith('.ts') });
}

/** Writes a file beside, and renames it, unless it is the same: a reader never sees half of it. */
function replace(file, contents, mode = 0o644) {
  if (existsSync(file) && readFileSync(file).equals(Buffer.from(contents))) return;
  const beside = `${file}.${process.pid}.new`;
  writeFileSync(beside, contents, { mode });
  renameSync(beside, file);
}

/** Gives the build the name of its contents, and makes it the one that commands start with. */
function finish() {
  const digest = createHash('sha256');
  for (const name of readdirSync(outdir, { recursive: true }).sort()) {
    const path = join(outdir, name);
    // DuckDB gives each of its files an id.
    if (statSync(path).isFile() && !name.endsWith('.duckdb')) digest.update(name).update(readFileSync(path));
  }
  const id = digest.digest('hex').slice(0, 12);
  const finished = join(dist, id);
  if (existsSync(finished)) rmSync(outdir, { recursive: true });
  else renameSync(outdir, finished);
  const now = new Date();
  utimesSync(finished, now, now);
  replace(join(dist, 'cli.js'), `#!/usr/bin/env node\nimport './${id}/cli.js';\n`, 0o755);
  return id;
}

/**
 * Removes what earlier builds left, but for the last ones, which may still run, and those that are being made. Only the
 * newest gets into the package.
 */
function removeOld(id) {
  const KEPT_BUILDS = 5;
  const MAKING_MS = 3_600_000;
  const entries = readdirSync(dist, { withFileTypes: true }).map((entry) => {
    const { name } = entry;
    return {
      name,
      isBuild: entry.isDirectory() && /^[\da-f]{12}$/.test(name),
      at: statSync(join(dist, name)).mtimeMs,
    };
  });
  const builds = entries.filter(({ isBuild }) => isBuild).sort((one, other) => other.at - one.at);
  const kept = new Set(['cli.js', 'LICENSES.txt', '.npmignore', id]);
  for (const { name } of builds.slice(0, KEPT_BUILDS)) kept.add(name);
  for (const { name, at } of entries)
    if (!kept.has(name) && !(name.startsWith('.next-') && Date.now() - at < MAKING_MS))
      rmSync(join(dist, name), { recursive: true, force: true });
  const others = [...kept].filter((name) => builds.some((one) => one.name === name) && name !== id);
  replace(join(dist, '.npmignore'), ['.next-*', ...others.sort()].map((name) => `/${name}\n`).join(''));
}

/**
 * What our own modules generate: the history that new ones are copies of, because creating the tables and views takes longer
 * than starting a command, and the schema with which editors complete and check the configuration.
 */
async function writeGenerated() {
  const program = join(outdir, 'generate.js');
  const contents = `
    export { jsonSchemaOf } from './config/problems.ts';
    export { settingsSchema } from './config/schema.ts';
    export { changeDatabase } from './history/duckdb.ts';
    export { createSchema } from './history/schema.ts';`;
  await build({
    ...bundled,
    ...{ outdir: undefined, outfile: program, stdin: { contents, resolveDir: source } },
    banner: requireFrom(`'${import.meta.url}'`),
  });
  const { changeDatabase, createSchema, jsonSchemaOf, settingsSchema } = await import(
    pathToFileURL(program).href
  );
  const file = join(outdir, 'history', 'empty.duckdb');
  rmSync(file, { force: true });
  await changeDatabase(file, createSchema);
  chmodSync(file, 0o644);
  replace(join(source, 'history', 'empty.duckdb'), readFileSync(file));
  const schema = JSON.stringify(jsonSchemaOf(settingsSchema), null, 2);
  replace(join(dist, '../templates/workspace/readership.schema.json'), `${schema}\n`);
  for (const left of [program, `${program}.map`]) rmSync(left);
}

/** The licenses of the bundled packages, which must be included in every copy. */
function licenses(inputs) {
  const folders = inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? []);
  return [...new Set(folders)]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
      const text =
        file === undefined ? `License: ${license}` : readFileSync(join(folder, file), 'utf8').trim();
      return `${name} ${version}\n\n${text}\n`;
    })
    .join(`\n${'-'.repeat(100)}\n\n`);
}
