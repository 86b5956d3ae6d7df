import { type ImprovePlan, planImprovement } from '../agents/plan.js';
import { proposalOf } from '../agents/prompt.js';
import { wordsOf } from '../agents/reasons.js';
import { readSitemap } from '../agents/sitemap.js';
import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import type { ProjectSettings } from '../config/schema.js';
import { dayOf } from '../day.js';
import { type PublishedReader, Remembering, WebHistory } from './history.js';
import { Questions, SavedQuestions } from './questions.js';

/** What pages and tools answer from. */
export interface Sources {
  readonly workspace: Workspace;
  readonly runtime: Pick<Runtime, 'now' | 'signal'>;
  readonly history: WebHistory;
  readonly questions: Pick<Questions, 'answer' | 'file'>;
  readonly saved: SavedQuestions;
  readonly proposals: Proposals;
}

export const openSources = (workspace: Workspace, options: WorkspaceOptions, runtime: Runtime): Sources => ({
  ...{ workspace, runtime },
  history: new WebHistory(workspace.historyFile, workspace.settings.sql.maxMemory),
  questions: new Questions(workspace, options, runtime),
  saved: new SavedQuestions(workspace),
  proposals: new Proposals(workspace),
});

/** A site's list of pages rarely changes between clicks. */
const SITEMAP_KEPT_MS = 5 * 60_000;

/** Selects the pages that deserve an agent, as `readership improve` does. */
class Proposals {
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
    const key = JSON.stringify([reader.version, project.id, dayOf(now), turn, path]);
    const { flagged, leftOut } = await this.#plans.get(key, () =>
      planImprovement(reader, project.id, settings.improve, state),
    );
    return {
      // Not remembered, because a template of the prompt may change meanwhile.
      proposed: flagged.map((page) => {
        const proposal = proposalOf(project.id, page, { workspaceDir, maxPromptLength });
        const { path, why, digest, instruction, prompt } = proposal;
        const ending = prompt.slice(instruction.length);
        return { path, why: wordsOf(why), digest, instruction, prompt, ending };
      }),
      leftOut: leftOut.map(({ path, why }) => ({ path, why: wordsOf(why) })),
    };
  }
}
