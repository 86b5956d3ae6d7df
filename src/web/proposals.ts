import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { type ImprovePlan, planImprovement, readCandidates } from '../agents/plan.js';
import { proposalOf } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import type { Candidate } from '../agents/select.js';
import { basePath, listedPages, loadSitemap, sitePaths } from '../agents/sitemap.js';
import type { Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { dayOf } from '../day.js';
import { ConfigurationError } from '../errors.js';
import type { PublishedReader } from './history.js';

/** A site's list of pages rarely changes between clicks. */
const SITEMAP_KEPT_MS = 5 * 60_000;

const turnOf = (now: Date): number => Math.floor(now.getTime() / SITEMAP_KEPT_MS);

/** Selects the pages to propose for agents, as `readership improve` does. */
export class Proposals {
  readonly #oneAtATime = pLimit(1);
  readonly #sitemaps = new LRUCache<number, readonly URL[]>({ max: 1 });
  readonly #plans = new LRUCache<string, ImprovePlan>({ max: 20 });
  /** Most of a plan's time goes into reading them, and they are the same for each page that someone names. */
  readonly #candidates = new LRUCache<string, readonly Candidate[]>({ max: 4 });

  constructor(private readonly workspace: Workspace) {}

  /** The pages to propose now, with their prompts; with a path, only that page. */
  async of(reader: PublishedReader, project: ProjectSettings, now: Date, path = '') {
    const { settings, workspaceDir } = this.workspace;
    const { flagged, leftOut } = await this.#oneAtATime(() => this.#plan(reader, project, now, path));
    return {
      // Not remembered, because a template of the prompt may change meanwhile.
      proposed: flagged.map((page) => {
        const proposal = proposalOf(project.id, page, { ...settings.improve, workspaceDir });
        const { why, despite, instruction, prompt } = proposal;
        return {
          ...proposal,
          why: wordsOf(why),
          caution: despite === undefined ? null : wordsOf(despite),
          isTwin: despite?.code === 'held-out',
          ending: prompt.slice(instruction.length),
        };
      }),
      leftOut: leftOut.map(({ path, why }) => ({ path, code: why.code, why: wordsOf(why) })),
    };
  }

  /** The pages of the sitemap, as parameters of a query. Throws a `ReadershipError` if they are unknown. */
  async listed({ siteUrl }: ProjectSettings, now: Date) {
    const addresses = await this.#oneAtATime(() => this.#addresses(now));
    if (addresses === undefined)
      throw new ConfigurationError(
        'To list pages without a view, name the site’s sitemap: improve.sitemap in readership.yaml.',
      );
    const paths = sitePaths(this.workspace.settings.improve.sitemap ?? '', addresses, siteUrl);
    return { listed: JSON.stringify(paths), base: basePath(siteUrl) };
  }

  async #addresses(now: Date): Promise<readonly URL[] | undefined> {
    const { sitemap } = this.workspace.settings.improve;
    if (sitemap === undefined) return undefined;
    const turn = turnOf(now);
    const addresses = this.#sitemaps.get(turn) ?? (await loadSitemap(sitemap, AbortSignal.timeout(10_000)));
    this.#sitemaps.set(turn, addresses);
    return addresses;
  }

  async #plan(reader: PublishedReader, project: ProjectSettings, now: Date, path: string) {
    const { improve } = this.workspace.settings;
    const turn = turnOf(now);
    const today = JSON.stringify([reader.version, project.id, dayOf(now)]);
    const key = JSON.stringify([today, improve.sitemap && turn, path]);
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const candidates =
      this.#candidates.get(today) ?? (await readCandidates(reader, project.id, improve, now));
    this.#candidates.set(today, candidates);
    const addresses = await this.#addresses(now);
    const isListed = addresses && listedPages(improve.sitemap ?? '', addresses, project.siteUrl);
    const state = { now, isListed, only: path === '' ? undefined : [path], candidates };
    const plan = await planImprovement(reader, project.id, improve, state);
    this.#plans.set(key, plan);
    return plan;
  }
}
