import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { type ImprovePlan, planImprovement } from '../agents/plan.js';
import { limitWords, reasonWords } from '../agents/reasons.js';
import { proposalOf } from '../agents/prompt.js';
import { type Ranking, readRanking } from '../agents/ranking.js';
import type { ConsideredPage } from '../agents/select.js';
import { basePath, readSitemap, type Sitemap } from '../agents/sitemap.js';
import type { Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { dayOf, startOfDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { timeLimit } from '../sleep.js';
import type { HistoryReader } from './history.js';

/** A site's list of pages rarely changes between clicks. */
const SITEMAP_KEPT_MS = 5 * 60_000;

/** Of the pages up next, so many are shown, each with its prompt. */
const MOST_NEXT = 20;

/** Selects the pages to flag for agents, as `readership improve` does. */
export class Proposals {
  readonly #oneAtATime = pLimit(1);
  readonly #sitemaps = new LRUCache<string, Sitemap>({
    max: 1,
    ttl: SITEMAP_KEPT_MS,
    fetchMethod: async (source) => (source === '' ? undefined : readSitemap(source, timeLimit(10_000))),
  });
  readonly #rankings = new LRUCache<string, Ranking>({ max: 3, ttl: SITEMAP_KEPT_MS });

  constructor(private readonly workspace: Workspace) {}

  /** The pages flagged now, with their prompts; with a path, only that page. */
  async of(reader: HistoryReader, project: ProjectSettings, now: Date, path = '') {
    const { flagged, next, leftOut, toPlan } = await this.select(reader, project, now, path);
    // Not remembered, because a template of the prompt may change meanwhile.
    const shown = (page: ConsideredPage) => {
      const proposal = proposalOf(project.id, page, this.workspace);
      const { why, despite, instruction, prompt } = proposal;
      return {
        ...proposal,
        why: reasonWords(why),
        caution: despite === undefined ? null : reasonWords(despite),
        ending: prompt.slice(instruction.length),
      };
    };
    return {
      proposed: flagged.map(shown),
      /** They wait only for room, in this order. */
      next: next.slice(0, MOST_NEXT).map(shown),
      nextCount: next.length,
      room: limitWords(toPlan),
      leftOut: leftOut.map(({ path, why }) => ({ path, code: why.code, why: reasonWords(why) })),
    };
  }

  /** The pages of the sitemap, as parameters of a query. Throws a `ReadershipError` if they are unknown. */
  async listed({ siteUrl }: ProjectSettings) {
    const sitemap = await this.#sitemaps.fetch(this.workspace.settings.improve.sitemap ?? '');
    if (sitemap === undefined)
      throw new ConfigurationError(
        'To list pages without a view, name the site’s sitemap: improve.sitemap in readership.yaml.',
      );
    return { listed: JSON.stringify(sitemap.pagesOf(siteUrl)), base: basePath(siteUrl) };
  }

  /** What improving a project would do now; with a path, to that page alone. */
  select(reader: HistoryReader, project: ProjectSettings, now: Date, path = ''): Promise<ImprovePlan> {
    return this.#oneAtATime(async () => {
      const ranking = await this.ranking(reader, project, now);
      const occasion = path === '' ? { now } : { now, only: [path] };
      return planImprovement(reader.state, project.id, this.workspace.settings.improve, ranking, occasion);
    });
  }

  /** What plans are made from. Most of a plan's time goes into reading it. */
  async ranking(reader: HistoryReader, project: ProjectSettings, now: Date): Promise<Ranking> {
    const { improve } = this.workspace.settings;
    const today = dayOf(now);
    const key = JSON.stringify([reader.version, project.id, today]);
    const known = this.#rankings.get(key);
    if (known !== undefined) return known;
    const sitemap = await this.#sitemaps.fetch(improve.sitemap ?? '');
    const ranking = await readRanking(reader, project, improve, { sitemap, now: startOfDay(today) });
    this.#rankings.set(key, ranking);
    return ranking;
  }
}
