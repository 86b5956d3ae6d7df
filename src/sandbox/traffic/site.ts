import { addDays, type Day } from '../../day.js';
import { laterPaths, type Prominent, PROMINENT, tailPaths } from './paths.js';
import { fraction, hash, hashText, shuffled, uniformFrom, wobble } from './random.js';

/** A page of the site and its share of the traffic. Ages are in days since the site's first day. */
export interface Page {
  readonly path: string;
  /** The path as a key for randomness, so that a page's traffic does not depend on its position in the list. */
  readonly key: number;
  /** Shares of the site's traffic, relative to those of the other pages. */
  readonly human: number;
  readonly ai: number;
  /** Age of the site at which the page appears; undefined if it existed before the first day. */
  readonly launchedAt: number | undefined;
  /** Age at which readers begin to leave the page. */
  readonly fadesAt: number | undefined;
  /** Views fall from a launch peak to this share of it: a changelog entry is read once, a guide for years. */
  readonly lasting: number;
}

/** The parameters of a site; the same three always give the same traffic. */
export interface SiteOptions {
  readonly seed: number;
  readonly firstDay: Day;
  /** Approximate number of pages at the end of the first half year. */
  readonly pages: number;
}

const HALF_YEAR = 182;
const CHANGELOG_EVERY = 14;
const CHANGELOG_BEFORE = 12;
const CHANGELOG_IN_HALF_YEAR = HALF_YEAR / CHANGELOG_EVERY;
/** The share of the pages at half a year that are launched within it. */
const LAUNCHED = 0.06;
/** Weekly views of the whole tail, distributed by Zipf's law. */
const TAIL_HUMAN = 5200;

const LEANINGS: readonly (readonly [prefix: string, aiForHuman: number])[] = [
  ['/api-reference', 1.7],
  ['/sdks', 1.2],
  ['/changelog', 0.35],
  ['/security', 0.4],
  ['/integrations', 0.6],
];
const leaning = (path: string): number => LEANINGS.find(([prefix]) => path.startsWith(prefix))?.[1] ?? 0.9;

/** The rank in the tail, where 0 is the most viewed. A single endpoint's page is never popular; a new page is. */
function rank(path: string, chance: number, launched: boolean): number {
  if (launched) return 0.02 + 0.18 * chance;
  return path.split('/').length > 3 ? 0.2 + 0.8 * chance : chance;
}

function tailPage(path: string, { seed, pages }: SiteOptions, launchedAt?: number): Page {
  const key = hashText(path);
  const place = rank(path, fraction(seed, key, 1), launchedAt !== undefined);
  const size = Math.max(1, pages - PROMINENT.length);
  const human = TAIL_HUMAN / ((place * size + 3) * Math.log((size + 3) / 3));
  const ai = human * leaning(path) * wobble(0.7, uniformFrom(seed, key, 2));
  const fades = fraction(seed, key, 3) < 0.04 && launchedAt === undefined;
  const fadesAt = fades ? hash(seed, key, 4) % (2 * HALF_YEAR) : undefined;
  return { path, key, human, ai, launchedAt, fadesAt, lasting: launchedAt === undefined ? 1 : 0.45 };
}

function changelogEntry({ firstDay }: SiteOptions, number: number): Page {
  const launchedAt = number * CHANGELOG_EVERY + 1;
  const path = `/changelog/${addDays(firstDay, launchedAt)}`;
  return { path, key: hashText(path), human: 150, ai: 45, launchedAt, fadesAt: undefined, lasting: 0.03 };
}

/** A site, which grows as days pass. */
export interface Site extends SiteOptions {
  /** Pages that exist at `age`, in no particular order. */
  readonly pagesAt: (age: number) => Page[];
}

/** Loses readers at the end of the first half year, for the weekly report to find. */
const LEAVING = { path: '/guides/migrate-v1', fadesAt: HALF_YEAR - 12 };

const prominentPage = ([path, human, ai]: Prominent): Page => ({
  path,
  key: hashText(path),
  human,
  ai,
  launchedAt: undefined,
  fadesAt: path === LEAVING.path ? LEAVING.fadesAt : undefined,
  lasting: 1,
});

function tailNames(seed: number, count: number): string[] {
  const names = shuffled([...tailPaths()], seed);
  const later = laterPaths();
  while (names.length < count) names.push(later.next().value);
  return names.slice(0, count);
}

/** All pages except the changelog. The site doubles at the pace of its first half year, and is then complete. */
function lastingPages(options: SiteOptions): Page[] {
  const { seed, pages } = options;
  const launches = Math.max(1, Math.round(pages * LAUNCHED));
  const atStart = Math.max(1, pages - launches - CHANGELOG_IN_HALF_YEAR - CHANGELOG_BEFORE);
  const prominent = PROMINENT.slice(0, atStart).map(prominentPage);
  const tail = tailNames(seed, 2 * pages - prominent.length).map((path, index) => {
    const launch = prominent.length + index - atStart;
    const launchedAt = launch < 0 ? undefined : Math.floor(((launch + 0.5) * HALF_YEAR) / launches);
    return tailPage(path, options, launchedAt);
  });
  return [...prominent, ...tail];
}

export function createSite(options: SiteOptions): Site {
  const lasting = lastingPages(options);
  const entries: Page[] = [];
  return {
    ...options,
    pagesAt: (age) => {
      for (let next = entries.length - CHANGELOG_BEFORE; next * CHANGELOG_EVERY < age; next += 1) {
        entries.push(changelogEntry(options, next));
      }
      return [...lasting, ...entries].filter((page) => (page.launchedAt ?? -Infinity) <= age);
    },
  };
}
