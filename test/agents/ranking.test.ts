import { describe, expect, it } from 'vitest';
import { planJob } from '../../src/agents/jobs.js';
import { reasonWords } from '../../src/agents/reasons.js';
import { guessVariants, sharedPath } from '../../src/agents/ranking.js';
import { recordSkip } from '../../src/state/decisions.js';
import { emptyState } from '../../src/state/open.js';
import type { State } from '../../src/state/state.js';
import { emptyHistory } from '../reports/history.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { type DailyReading, jobFor, planFrom, readingSql, RULES } from './reading.js';

const GUIDES = ['/guides/a', '/guides/b', '/guides/c'];
const under = (prefix: string) => GUIDES.map((page) => prefix + page);

describe('where translations and versions begin is guessed', () => {
  it.each([
    ['translations', [...GUIDES, ...under('/fr'), ...under('/pt-BR')], ['/fr', '/pt-BR']],
    ['a language of each page', [...under('/en'), ...under('/de')], ['/de', '/en']],
    ['old versions', [...GUIDES, ...under('/v1'), ...under('/1.2')], ['/1.2', '/v1']],
    [
      'named versions',
      [...under('/latest'), ...under('/stable'), ...under('/next')],
      ['/latest', '/next', '/stable'],
    ],
    ['below a section', ['/docs/a', '/docs/b', '/docs/v1/a', '/docs/v1/b'], ['/docs/v1']],
    ['versions of an API', ['/api/v1/users', '/api/v2/users'], ['/api/v1', '/api/v2']],
    ['a version in a language', [...under('/fr/v1'), ...under('/v1'), ...GUIDES], ['/fr', '/v1']],
    [
      'a translation with some pages of its own',
      [...GUIDES, ...under('/fr'), '/fr/only', '/fr/there'],
      ['/fr'],
    ],
    ['an API with one version', ['/api/v1/users', '/api/v1/jobs', '/users/list'], []],
    ['a site in one language', under('/de'), []],
    ['sections for programming languages', ['/go/install', '/ts/install', '/install'], []],
    ['a section with one page of the same name', ['/it/install', '/it/vpn', '/it/mail', '/install'], []],
    [
      'early versions',
      [...under('/v1beta1'), ...under('/v1'), ...under('/2.0.0-rc.1')],
      ['/2.0.0-rc.1', '/v1', '/v1beta1'],
    ],
    ['posts of the same name each month', ['/blog/2026/10/news', '/blog/2026/11/news'], []],
    ['numbered pages', ['/releases/1', '/releases/2', '/releases'], []],
  ])('of a site with %s', (_, pages, variants) => {
    expect(guessVariants(pages)).toEqual(variants);
  });

  it.each([
    ['/fr/guides/a', '/guides/a'],
    ['/docs/v1/a', '/docs/a'],
    ['/fr/docs/v1/a', '/docs/a'],
    ['/fr', '/'],
    ['/docs/v1', '/docs'],
    ['/french/a', '/french/a'],
    ['/', '/'],
  ])('%s is a variant of %s', (path, shared) => {
    expect(sharedPath(path, ['/docs/v1', '/fr'])).toBe(shared);
  });
});

/** The plan for a site, each page with its views a day, in a state with these jobs and skips. */
async function planOf(
  views: Readonly<Record<string, number>>,
  { rules = {}, store = () => undefined }: { rules?: object; store?: (state: State) => unknown } = {},
) {
  const history = await emptyHistory();
  const pages = Object.entries(views).map(([path, human]): DailyReading => ({ path, human, ai: 0 }));
  await history.run(readingSql(pages));
  const state = emptyState();
  await state.transaction(() => void store(state));
  const { flagged, leftOut } = await planFrom(
    { state, reader: history.reader },
    'prj_sandbox',
    { ...RULES, ...rules },
    { now: NOW },
  );
  return {
    flagged: flagged.map(({ path }) => path),
    leftOut: leftOut.map(({ path, why }) => `${path}: ${reasonWords(why)}`),
  };
}

const SITE = {
  '/guides/a': 300,
  '/fr/guides/a': 200,
  '/v1/guides/a': 100,
  '/guides/b': 90,
  '/de/guides/b': 95,
};
const OF_A = [
  '/fr/guides/a: translation or version of /guides/a, which has more views',
  '/v1/guides/a: translation or version of /guides/a, which has more views',
];
const OF_B = '/guides/b: translation or version of /de/guides/b, which has more views';

it('only the most viewed of a page, its translations and versions is flagged', async () => {
  expect(await planOf(SITE)).toEqual({ flagged: ['/guides/a', '/de/guides/b'], leftOut: [...OF_A, OF_B] });
});

it('a file or system address is no page for a job, however often it is viewed', async () => {
  const views = { '/guides/a': 300, '/robots.txt': 900, '/404': 800, '/assets/app.js': 700 };
  expect(await planOf(views)).toEqual({ flagged: ['/guides/a'], leftOut: [] });
});

it('all of them can be flagged if the settings say so', async () => {
  expect((await planOf(SITE, { rules: { variants: [] } })).flagged).toEqual(
    Object.entries(SITE)
      .toSorted(([, one], [, two]) => two - one)
      .map(([path]) => path),
  );
  expect((await planOf(SITE, { rules: { variants: ['/fr', '/v1'] } })).leftOut).toEqual(OF_A);
});

it('the job of one counts for all', async () => {
  const store = (state: State) => planJob(state, jobFor('/fr/guides/a', NOW));
  expect(await planOf(SITE, { store })).toEqual({
    flagged: ['/de/guides/b'],
    leftOut: [
      '/guides/a: translation or version of /fr/guides/a, which has, or recently had, a job',
      '/fr/guides/a: has job 1, planned',
      '/v1/guides/a: translation or version of /guides/a, which has more views',
      OF_B,
    ],
  });
});

it('one that cannot get a job gives way to the next', async () => {
  expect((await planOf(SITE, { rules: { exclude: ['/de/**'] } })).flagged).toEqual([
    '/guides/a',
    '/guides/b',
  ]);
});

it('a skipped page is not replaced by its translation, and a skipped translation is no reason to skip the page', async () => {
  const skip = (path: string) => (state: State) => {
    recordSkip(state, { project: 'prj_sandbox', path }, NOW, null);
  };
  expect((await planOf(SITE, { store: skip('/guides/a') })).flagged).toEqual(['/de/guides/b']);
  expect((await planOf(SITE, { store: skip('/fr/guides/a') })).flagged).toEqual([
    '/guides/a',
    '/de/guides/b',
  ]);
});
