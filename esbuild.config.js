/**
 * Bundles the command line into dist/, or the directory given: one file that every command starts with, and chunks that
 * commands load when they need them. Only packages with a native binary stay outside. dist/ also has the
 * separate modules, for tests that start their own programs. Types are not checked here: `npm run check:types`.
 */
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
const outdir = process.argv[2] ?? 'dist';
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

rmSync(outdir, { recursive: true, force: true });
if (outdir === 'dist') await build({ ...output, entryPoints: ['src/**/*.ts'], outbase: 'src' });
const bundled = { ...output, bundle: true, external: NATIVE, plugins: [ownUrls, partsOfPackages] };
/** CommonJS modules in a bundle call `require`, which ES modules lack. It searches for packages from `url`. */
const requireFrom = (url) => ({
  js: `import{createRequire as requireFrom}from'node:module';const require=requireFrom(${url});`,
});
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
chmodSync(join(outdir, 'cli.js'), 0o755);
cpSync('src', outdir, { recursive: true, filter: (path) => !path.endsWith('.ts') });
writeFileSync(join(outdir, 'LICENSES.txt'), licenses(Object.keys(metafile.inputs)));
await writeGenerated();

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
  await changeDatabase(file, createSchema);
  chmodSync(file, 0o644);
  const schema = JSON.stringify(jsonSchemaOf(settingsSchema), null, 2);
  writeFileSync(join(outdir, '../templates/workspace/readership.schema.json'), `${schema}\n`);
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
