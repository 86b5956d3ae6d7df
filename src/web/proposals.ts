import { planImprovement } from '../agents/plan.js';
import { proposalOf } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import { readSitemap } from '../agents/sitemap.js';
import type { Workspace } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { type PublishedReader, Remembering } from './history.js';

/** Neither the sitemap nor a prompt's template changes from click to click. */
const KEPT_MS = 60_000;

/** Chooses the pages that deserve an agent, as `readership improve` does. */
export class Proposals {
  readonly #sitemaps = new Remembering<Awaited<ReturnType<typeof readSitemap>>>(1);
  readonly #choices = new Remembering<Awaited<ReturnType<typeof choose>>>(20);

  constructor(private readonly workspace: Workspace) {}

  /** The pages to propose now; or what is to be said of one page, where it is named. */
  async of(reader: PublishedReader, project: ProjectSettings, now: Date, path = '') {
    const { sitemap } = this.workspace.settings.improve;
    const turn = Math.floor(now.getTime() / KEPT_MS);
    const listedOf = await this.#sitemaps.get(`${turn}`, () =>
      readSitemap(sitemap, AbortSignal.timeout(10_000)),
    );
    const state = { now, isListed: listedOf(project.siteUrl), only: path === '' ? undefined : [path] };
    return this.#choices.get(JSON.stringify([reader.version, project.id, turn, path]), () =>
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
