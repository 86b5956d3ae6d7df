import { planImprovement } from '../agents/plan.js';
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
  readonly #choices = new Remembering<Awaited<ReturnType<typeof choose>>>(20);

  constructor(private readonly workspace: Workspace) {}

  /** The choice of the day; or what is to be said of one page, where it is named. */
  async of(reader: PublishedReader, project: ProjectSettings, now: Date, path = '') {
    const { sitemap } = this.workspace.settings.improve;
    const listedOf = await this.#sitemaps.get(`${Math.floor(now.getTime() / SITEMAP_KEPT_MS)}`, () =>
      readSitemap(sitemap, AbortSignal.timeout(10_000)),
    );
    const state = { now, isListed: listedOf(project.siteUrl), only: path === '' ? undefined : [path] };
    return this.#choices.get(JSON.stringify([reader.version, project.id, dayOf(now), path]), () =>
      choose(reader, this.workspace, project.id, state),
    );
  }
}

async function choose(
  reader: PublishedReader,
  { settings: { improve }, directory: workspaceDir }: Workspace,
  project: string,
  state: Parameters<typeof planImprovement>[3],
) {
  const { flagged, leftOut } = await planImprovement(reader, project, improve, state);
  const rules = { workspaceDir, maxPromptLength: improve.maxPromptLength };
  return {
    proposed: flagged.map((page) => {
      const { path, why, digest, instruction, prompt } = proposalOf(project, page, rules);
      return {
        path,
        why: wordsOf(why),
        digest,
        instruction,
        prompt,
        ending: prompt.slice(instruction.length),
      };
    }),
    leftOut: leftOut.map(({ path, why }) => ({ path, why: wordsOf(why) })),
  };
}
