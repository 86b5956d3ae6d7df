import { addDays, type Day } from '../../day.js';
import { fraction, hash, hashText, shuffled, uniformFrom, wobble } from './random.js';

/** A prominent page and the views it gets in a week, by people and by AI, before seasons and noise. */
type Prominent = readonly [path: string, human: number, ai: number];

const PROMINENT: readonly Prominent[] = [
  ...`
  /quickstart 2140 1720   / 1690 610   /api-reference/authentication 1390 2210
  /guides/webhooks 1250 1130   /sdks/typescript 1060 890   /api-reference/errors 820 1640
  /concepts/projects 740 640   /guides/rate-limits 590 1180   /sdks/python 680 820
  /changelog 640 260   /api-reference 560 480   /guides/deploy 520 390
  /guides/pagination 310 560   /concepts/environments 330 240   /guides/migrate-v1 290 160
  /cli 280 190   /sdks 260 130   /guides/idempotency 170 360   /integrations 230 90
  /guides/retries 150 310   /security 160 70   /guides/testing 180 150
  /guides/streaming 140 230   /concepts/permissions 150 130   /integrations/github 170 90
  /integrations/slack 160 60   /guides/local-development 150 120   /status-codes 60 190
  /support 130 20   /glossary 50 90   /api-reference/openapi 46 640   /openapi.json 12 420
  /llms.txt 14 720   /llms-full.txt 11 1150`.matchAll(/(\S+) (\d+) (\d+)/g),
].map(([, path = '', human, ai]) => [path, Number(human), Number(ai)]);

const words = (text: string): string[] => text.trim().split(/\s+/);
const cross = (heads: readonly string[], tails: readonly string[]): string[] =>
  heads.flatMap((head) => tails.map((tail) => `${head}/${tail}`));

const resources =
  words(`accounts api-keys assets audit-events batches builds comments customers datasets deployments
  domains environments exports files imports invoices jobs keys labels members messages models organizations projects
  queries releases reports schedules secrets sessions subscriptions teams tokens users webhooks workflows`);
const operations = words('list create retrieve update delete');
const languages = words('typescript python go ruby java kotlin php csharp rust');
const sdkTopics = words('installation errors pagination retries webhooks streaming testing timeouts types');

/** Sections with their pages. */
const SECTIONS = `
  /guides: async-jobs audit-logs backups batch-jobs billing-alerts branching bulk-import caching ci-cd
    compliance-exports cost-control custom-domains data-residency debugging edge-functions embedding
    environments-sync error-handling event-ordering feature-flags file-uploads filtering graphql key-rotation
    large-files logging metrics migrate-v2 monitoring multi-region multi-tenancy notifications oauth observability
    offline-mode performance preview-environments production-checklist queues real-time replays role-design
    sandboxing scheduled-jobs schema-changes search secrets-management server-side-rendering signing-requests
    single-sign-on sorting static-sites terraform usage-reports versioning webhook-signatures zero-downtime
  /concepts: accounts api-versions authentication billing builds consistency deployments domains events identities
    jobs lifecycles limits metadata objects organizations pagination queues regions releases roles scopes sessions
    snapshots storage teams tokens workflows
  /integrations: airtable auth0 aws azure bitbucket cloudflare datadog discord docker fly gitlab google-cloud
    grafana heroku hubspot jira kubernetes linear netlify notion okta pagerduty postgres redis segment sentry
    snowflake stripe supabase teams terraform twilio vercel zapier
  /cli: build config deploy dev env init install link login logs pull push rollback run upgrade
  /security: access-reviews data-retention encryption gdpr incident-response pen-tests soc2`;

/** The long tail of an ordinary site, section by section. */
function* tailPaths(): Generator<string> {
  yield* cross(['/api-reference'], resources);
  yield* cross(cross(['/api-reference'], resources), operations);
  yield* cross(cross(['/sdks'], languages.slice(2)), sdkTopics);
  yield* cross(['/sdks'], languages.slice(2));
  for (const [, section = '', pages = ''] of SECTIONS.matchAll(/(\/\S+): ([^:/]+)/g))
    yield* cross([section], words(pages));
}

/** Endless further names, for a site that is larger or keeps growing. */
function* laterPaths(): Generator<string, never> {
  yield* cross(cross(['/sdks'], languages.slice(0, 2)), sdkTopics);
  yield* resources.flatMap((resource) => operations.map((verb) => `/recipes/${verb}-${resource}-in-bulk`));
  for (let number = 1; ; number += 1) yield `/archive/note-${String(number).padStart(4, '0')}`;
}

/** A page of the site and its share of the traffic. Ages are in days since the site's first day. */
export interface Page {
  readonly path: string;
  /**
   * The path as a key for randomness, so that a page's traffic does not depend on its position in
   * the list.
   */
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

/**
 * The rank in the tail, where 0 is the most viewed. A single endpoint's page is never popular; a
 * new page is.
 */
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
export type Site = ReturnType<typeof createSite>;

/** Loses readers at the end of the first half year, for the weekly report to find. */
const LEAVING = { path: '/guides/migrate-v1', fadesAt: HALF_YEAR - 12 };

/** Appears in the last week before a new sandbox is first run. */
const NEW_GUIDE = { path: '/guides/mcp-server', human: 320, ai: 410, launchedAt: 205, lasting: 0.6 };

function prominentPage([path, human, ai]: Prominent): Page {
  const fadesAt = path === LEAVING.path ? LEAVING.fadesAt : undefined;
  return { path, key: hashText(path), human, ai, launchedAt: undefined, fadesAt, lasting: 1 };
}

function tailNames(seed: number, count: number): string[] {
  const names = shuffled([...tailPaths()], seed);
  const later = laterPaths();
  while (names.length < count) names.push(later.next().value);
  return names.slice(0, count);
}

/**
 * All pages except the changelog. The site doubles at the pace of its first half year, and is then
 * complete.
 */
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
  const newGuide = { ...NEW_GUIDE, key: hashText(NEW_GUIDE.path), fadesAt: undefined };
  return [...prominent, ...tail, ...(pages > PROMINENT.length ? [newGuide] : [])];
}

export function createSite(options: SiteOptions) {
  const lasting = lastingPages(options);
  const entries: Page[] = [];
  return {
    ...options,
    /** Pages that exist at `age`, in no particular order. */
    pagesAt: (age: number): Page[] => {
      for (let next = entries.length - CHANGELOG_BEFORE; next * CHANGELOG_EVERY < age; next += 1) {
        entries.push(changelogEntry(options, next));
      }
      return [...lasting, ...entries].filter((page) => (page.launchedAt ?? -Infinity) <= age);
    },
  };
}
