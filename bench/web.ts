import { request } from 'undici';
import { readWorkspace } from '../src/app/workspace.js';
import { DEFAULT_SERVE } from '../src/config/serve.js';
import { addDays } from '../src/day.js';
import { Output } from '../src/terminal/output.js';
import { serveWeb } from '../src/web/serve.js';
import { inTemporaryDirectory, median } from './processes.js';
import { configure, createHistory, firstOf, type Shape, yesterday } from './workspace.js';

/** The history ends with it. */
const LAST = addDays(yesterday(), -1);

const PAGES = [
  ...[
    '/',
    '/?range=all',
    '/pages',
    '/pages?search=page-1&sort=ai',
    '/page?path=%2Fdocs%2Fguides%2Fpage-1234',
  ],
  ...[`/pages?from=${LAST}&to=${LAST}`, '/pages?per=section&range=all', '/section?section=%2Fdocs'],
  ...[
    '/pages?readers=ai&sort=ai&range=all',
    '/agents',
    '/agents?path=%2Fdocs%2Fguides%2Fpage-1234',
    '/reports',
    '/health',
  ],
];
const ROUNDS = 3;

/**
 * The times of pages of the web app, in milliseconds: `first` for the first request for a page after the server has
 * started, `again` for those that follow. The server serves a history of the given shape.
 */
export const askWeb = (shape: Shape): Promise<Record<string, { first: number; again: number }>> =>
  inTemporaryDirectory(async (directory) => {
    await configure(directory, 'https://platform.example.com', firstOf(shape.days));
    await createHistory(directory, shape);
    const ms: Record<string, { first: number[]; again: number[] }> = {};
    for (let round = 0; round < ROUNDS; round++)
      await withWeb(directory, async (ask) => {
        for (const path of PAGES) {
          const kept = (ms[path] ??= { first: [], again: [] });
          kept.first.push(await ask(path));
          kept.again.push(await ask(path), await ask(path));
        }
      });
    return Object.fromEntries(
      Object.entries(ms).map(([path, { first, again }]) => [
        path,
        { first: median(first), again: median(again) },
      ]),
    );
  });

async function withWeb(
  workingDirectory: string,
  work: (ask: (path: string) => Promise<number>) => Promise<void>,
): Promise<void> {
  const runtime = {
    ...{ workingDirectory, environment: {}, now: () => new Date(), signal: new AbortController().signal },
    output: new Output(process.stdout, process.stderr, false),
  };
  const workspace = await readWorkspace({}, runtime);
  const onError = (words: string) => process.stderr.write(`${words}\n`);
  const settings = { ...DEFAULT_SERVE, port: 0 };
  const web = await serveWeb({ workspace, runtime, settings, onError });
  const { origin, searchParams } = new URL(web.address);
  const headers = { authorization: `Bearer ${searchParams.get('token') ?? ''}` };
  try {
    await work(async (path) => {
      const startedMs = performance.now();
      const { statusCode, body } = await request(origin + path, { headers });
      await body.dump();
      if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`);
      return performance.now() - startedMs;
    });
  } finally {
    await web.close();
  }
}
