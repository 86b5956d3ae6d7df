import { type ImprovePlan, planImprovement } from '../agents/plan.js';
import { proposalOf } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import { readSitemap } from '../agents/sitemap.js';
import type { Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { dayOf } from '../day.js';
import { type PublishedReader, Remembering } from './history.js';

/** A site's list of pages does not change from click to click. */
const SITEMAP_KEPT_MS = 5 * 60_000;

/** Chooses the pages that deserve an agent, as `readership improve` does. */
export class Proposals {
  readonly #sitemaps = new Remembering<Awaited<ReturnType<typeof readSitemap>>>(1);
  readonly #plans = new Remembering<ImprovePlan>(20);

  constructor(private readonly workspace: Workspace) {}

  /** The pages to propose now, with their prompts; with a path, only that page. */
  async of(reader: PublishedReader, project: ProjectSettings, now: Date, path = '') {
    const { settings, directory: workspaceDir } = this.workspace;
    const { sitemap, maxPromptLength } = settings.improve;
    const turn = sitemap === undefined ? 0 : Math.floor(now.getTime() / SITEMAP_KEPT_MS);
    const listedOf = await this.#sitemaps.get(`${turn}`, () =>
      readSitemap(sitemap, AbortSignal.timeout(10_000)),
    );
    const state = { now, isListed: listedOf(project.siteUrl), only: path === '' ? undefined : [path] };
    const question = JSON.stringify([reader.version, project.id, dayOf(now), turn, path]);
    const { flagged, leftOut } = await this.#plans.get(question, () =>
      planImprovement(reader, project.id, settings.improve, state),
    );
    return {
      // Not remembered, because a template of the prompt may change meanwhile.
      proposed: flagged.map((page) => {
        const proposal = proposalOf(project.id, page, { workspaceDir, maxPromptLength });
        const { path, why, digest, instruction, prompt } = proposal;
        return {
          ...{ path, why: wordsOf(why), digest, instruction, prompt },
          ending: prompt.slice(instruction.length),
        };
      }),
      leftOut: leftOut.map(({ path, why }) => ({ path, why: wordsOf(why) })),
    };
  }
}
