import { poisson, type Uniform, uniformFrom } from '../../src/sandbox/traffic/random.js';

const AUDIENCES = ['human', 'ai'] as const;
type Audience = (typeof AUDIENCES)[number];

/** What happens on a simulated site. Factors are of a week's views; `ago` counts weeks back. */
export interface Scenario {
  readonly name: string;
  readonly pages: number;
  /** Full weeks before the examined one. */
  readonly weeks: number;
  /** Views of all pages, relative to a normal site. */
  readonly volume?: number;
  /** Noise of a page's week, relative to a calm site. */
  readonly restlessness?: number;
  /** Weekly growth of the whole site: 0.02 is 2% more each week. */
  readonly growth?: Readonly<Record<Audience, number>>;
  /** A week in which the whole site is read differently, and how much pages differ in that. */
  readonly season?: { readonly ago: number; readonly factor: number; readonly spread: number };
  /** In one night, a crawler visits this share of the pages, this many times. */
  readonly crawl?: { readonly ago: number; readonly share: number; readonly visits: number };
  /** One page gets this many times the views of the whole site; it counts as a page that moved. */
  readonly spam?: number;
  /** This share of the `largest` pages, or of all, gets new addresses, at the start of a week or in the middle of it. */
  readonly renamed?: {
    readonly ago: number;
    readonly share: number;
    readonly largest?: number;
    readonly isMidweek?: boolean;
  };
  /** This many new pages, as popular as the others. */
  readonly launched?: { readonly ago: number; readonly pages: number };
  /** This share of the pages changes to a new level. */
  readonly stepped?: { readonly ago: number; readonly share: number };
  /** Each week, a bot visits this share of the pages in one night, or in two. */
  readonly bots?: { readonly share: number; readonly nights: number };
  /** Noise follows a t distribution with so few degrees of freedom. */
  readonly tails?: number;
  /** So many sections, whose pages share a noise with this standard deviation. */
  readonly sections?: { readonly count: number; readonly noise: number };
  /** Standard deviation of the pages' own weekly growth. */
  readonly ownGrowth?: number;
}

/** One page's views in each week, the examined one last. */
export interface SimulatedPage {
  readonly path: string;
  readonly views: Readonly<Record<Audience, readonly number[]>>;
  /** Further views in each week, all in so many of its nights. */
  readonly bursts?: Readonly<Record<Audience, readonly number[]>> & { readonly nights: number };
}

export interface SimulatedSite {
  readonly pages: readonly SimulatedPage[];
  /** Pages that really moved, such as `human /page-7`. */
  readonly moved: ReadonlySet<string>;
}

/** Pages that really move, for human and for AI views each. */
const PLANTED = 5;
/** Changes of smaller pages cannot be distinguished from chance. */
const PLANTED_VIEWS_LEAST = 40;

/** Weekly standard deviations of the logarithm of a calm page's views. */
const NOISE = 0.1;
const NOISE_SPREAD = 0.4;
const NOISE_MEMORY = 0.4;
const DRIFT = 0.02;
const BURSTS = 0.004;
const STEPS = 0.003;

/**
 * A site whose page sizes follow Zipf's law. Each page has its own noise, which carries over to the next week, and its
 * own drift, bursts and steps, separately for people and AI. Bursts and steps end before the examined week, in which
 * only planted changes happen.
 */
export function simulateSite(scenario: Scenario, seed: number, planted: boolean): SimulatedSite {
  const uniform = uniformFrom(seed, scenario.pages, scenario.weeks);
  const moved = new Set<string>();
  const sections = sectionsOf(scenario, uniform);
  const pages = Array.from({ length: scenario.pages }, (_, rank) =>
    pageMeans(scenario, rank, sections[rank % sections.length], uniform),
  );
  if (planted) for (const audience of AUDIENCES) plant(pages, audience, moved, uniform);
  const spammed = scenario.spam === undefined ? undefined : pages[Math.floor(uniform() * pages.length)];
  if (spammed !== undefined) {
    const all = pages.reduce((sum, { means }) => sum + (means.human.at(-1) ?? 0), 0);
    addTo(spammed.means.human, 0, all * (scenario.spam ?? 0));
    moved.add(`human ${spammed.path}`);
  }
  return {
    pages: pages.flatMap((page, rank) =>
      addressed(scenario, counted(page, scenario, uniform), rank, uniform, moved),
    ),
    moved,
  };
}

interface PageMeans {
  readonly path: string;
  readonly means: Record<Audience, number[]>;
}

type Section = Readonly<Record<Audience, readonly number[]>>;

/** The shared noise of the pages of each section, by week. */
function sectionsOf({ sections, weeks }: Scenario, uniform: Uniform): Section[] {
  const noise = () => Array.from({ length: weeks + 1 }, () => (sections?.noise ?? 0) * normal(uniform));
  return Array.from({ length: sections?.count ?? 0 }, () => ({ human: noise(), ai: noise() }));
}

function pageMeans(
  scenario: Scenario,
  rank: number,
  section: Section | undefined,
  uniform: Uniform,
): PageMeans {
  const size =
    (6000 * (scenario.volume ?? 1) * Math.sqrt(Math.max(1, scenario.pages / 450))) / (rank + 6) ** 1.05;
  const launched = scenario.launched;
  const firstAgo =
    launched !== undefined && uniform() < launched.pages / scenario.pages ? launched.ago : Infinity;
  const crawled = scenario.crawl !== undefined && uniform() < scenario.crawl.share;
  const means = (audience: Audience): number[] => {
    const noise = NOISE * (scenario.restlessness ?? 1) * Math.exp(NOISE_SPREAD * normal(uniform));
    const seasonal =
      (scenario.season?.factor ?? 1) * Math.exp((scenario.season?.spread ?? 0) * normal(uniform));
    const stepped = scenario.stepped !== undefined && uniform() < scenario.stepped.share ? step(uniform) : 1;
    let level = size * (audience === 'ai' ? 0.8 * Math.exp(0.5 * normal(uniform)) : 1);
    const own = (scenario.ownGrowth ?? 0) * normal(uniform);
    const innovation = () =>
      normal(uniform) / (scenario.tails === undefined ? 1 : tail(scenario.tails, uniform));
    let carried = noise * innovation();
    return Array.from({ length: scenario.weeks + 1 }, (_, index) => {
      const ago = scenario.weeks - index;
      level *= (1 + (scenario.growth?.[audience] ?? 0)) * Math.exp(own + DRIFT * normal(uniform));
      if (ago > 0 && uniform() < STEPS) level *= Math.exp(0.5 * normal(uniform));
      if (ago === scenario.stepped?.ago) level *= stepped;
      carried = NOISE_MEMORY * carried + noise * Math.sqrt(1 - NOISE_MEMORY ** 2) * innovation();
      const burst = ago > 0 && uniform() < BURSTS ? 2 + 2 * uniform() : 1;
      const season = ago === scenario.season?.ago ? seasonal : 1;
      const mean =
        ago > firstAgo ? 0 : level * Math.exp(carried + (section?.[audience][index] ?? 0)) * burst * season;
      return mean + (crawled && audience === 'ai' && ago === scenario.crawl.ago ? scenario.crawl.visits : 0);
    });
  };
  return { path: `/page-${rank}`, means: { human: means('human'), ai: means('ai') } };
}

/** Divides a normal number into one of a t distribution. */
const tail = (freedom: number, uniform: Uniform): number =>
  Math.sqrt(
    Array.from({ length: freedom }, () => normal(uniform) ** 2).reduce((sum, square) => sum + square, 0) /
      freedom,
  );

/** A factor of 1.6 to 3, up or down. */
const step = (uniform: Uniform): number => (1.6 + 1.4 * uniform()) ** (uniform() < 0.5 ? 1 : -1);

function plant(pages: readonly PageMeans[], audience: Audience, moved: Set<string>, uniform: Uniform): void {
  const large = pages.filter(({ means }) => (means[audience].at(-2) ?? 0) >= PLANTED_VIEWS_LEAST);
  for (let left = Math.min(PLANTED, large.length); left > 0; left -= 1) {
    const [page] = large.splice(Math.floor(uniform() * large.length), 1);
    if (page === undefined) return;
    const last = page.means[audience].at(-1) ?? 0;
    addTo(page.means[audience], 0, last * (step(uniform) - 1));
    moved.add(`${audience} ${page.path}`);
  }
}

function addTo(weeks: number[], ago: number, more: number): void {
  const index = weeks.length - 1 - ago;
  weeks[index] = (weeks[index] ?? 0) + more;
}

function counted({ path, means }: PageMeans, { bots }: Scenario, uniform: Uniform): SimulatedPage {
  const views = (audience: Audience) => means[audience].map((mean) => poisson(mean, uniform));
  const page = { path, views: { human: views('human'), ai: views('ai') } };
  if (bots === undefined) return page;
  const bursts = (audience: Audience) =>
    means[audience].map((mean) =>
      uniform() < bots.share ? poisson(20 + mean * (0.5 + 3 * uniform()), uniform) : 0,
    );
  return { ...page, bursts: { human: bursts('human'), ai: bursts('ai'), nights: bots.nights } };
}

/** The page as it is, or as its old and new address, which have its views before and after. */
function addressed(
  { renamed }: Scenario,
  page: SimulatedPage,
  rank: number,
  uniform: Uniform,
  moved: Set<string>,
): SimulatedPage[] {
  if (renamed === undefined || rank >= (renamed.largest ?? Infinity) || uniform() >= renamed.share)
    return [page];
  const part = (path: string, isOld: boolean): SimulatedPage => {
    const kept = (weeks: readonly number[]) =>
      weeks.map((views, index) => {
        const ago = weeks.length - 1 - index;
        if (ago === renamed.ago && renamed.isMidweek === true)
          return isOld ? Math.ceil(views / 2) : Math.floor(views / 2);
        return ago > renamed.ago === isOld ? views : 0;
      });
    return { path, views: { human: kept(page.views.human), ai: kept(page.views.ai) } };
  };
  for (const audience of AUDIENCES)
    if (moved.delete(`${audience} ${page.path}`) && renamed.ago > 0)
      moved.add(`${audience} /new${page.path}`);
  return [part(page.path, true), part(`/new${page.path}`, false)];
}

export const normal = (uniform: Uniform): number =>
  Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
