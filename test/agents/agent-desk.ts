import { expect } from 'vitest';
import { readJobs } from '../../src/agents/job.js';
import { planJob } from '../../src/agents/ledger.js';
import { readMessages } from '../../src/agents/messages.js';
import type { SubmitTask } from '../../src/agents/submit.js';
import { Client } from '../../src/api/client.js';
import { reconcileEffects } from '../../src/app/janitor.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { openTransport } from '../api/open-client.js';
import { closeNow, journalOf, liveWarehouse } from '../open-warehouse.js';
import { clockAt, NOW, openSandbox } from '../sandbox/open-sandbox.js';
import { type GivenParts, partsOf } from '../steps/parts-of.js';
import { EVIDENCE } from './reading.js';

export type AgentDesk = Awaited<ReturnType<typeof agentDesk>>;

/** Everything that jobs need: a live database, the sandbox over HTTP, and one clock for both. */
export async function agentDesk(options: Partial<SandboxOptions> = {}) {
  const clock = clockAt(NOW);
  const { sandbox } = await openSandbox(options, clock);
  const { baseUrl, apiKey, projectId: project } = sandbox;
  const client = new Client({
    ...{ baseUrl, projectId: project, apiKey, keyName: 'READERSHIP_API_KEY', now: clock.now },
    retries: { retries: 0, minDelayMs: 1, maxDelayMs: 1 },
    transport: openTransport({ responseTimeoutMs: 1000 }),
  });
  const open = async (path?: string) => {
    const warehouse = await liveWarehouse(path);
    return { warehouse, journal: await journalOf(warehouse) };
  };
  const desk = { sandbox, clock, project, client, ...(await open()) };
  return Object.assign(desk, {
    task: (): SubmitTask => ({
      warehouse: desk.warehouse,
      journal: desk.journal,
      client,
      project,
      now: clock.now,
    }),
    /** The parts of a step that works with it. */
    parts: ({ settings, workspace, platform }: Omit<GivenParts, 'effects' | 'session'> = {}) =>
      partsOf(desk.warehouse, {
        settings: { projects: [{ id: project }], ...settings },
        workspace: { ...workspace },
        platform: { clientOf: () => client, ...platform },
        effects: { journal: desk.journal },
        session: { now: clock.now },
      }),
    /** Plans one job per page: `/page-1`, `/page-2`, … */
    plan: async (count: number, first = 1) => {
      for (let number = first; number < first + count; number++) {
        const page = { path: `/page-${number}`, reason: 'much read', evidence: EVIDENCE };
        const prompt = `Improve /page-${number}`;
        await planJob(desk.warehouse, { project, page, prompt, now: clock.now() });
      }
    },
    jobs: () => readJobs(desk.warehouse, project),
    job: async (id: number) => {
      const jobs = await readJobs(desk.warehouse, project);
      return jobs.find((job) => job.id === id) ?? expect.fail(`no job ${id}`);
    },
    messages: () => readMessages(desk.warehouse, project),
    /** Closes the database and opens it again, as another process would. */
    restart: async () => {
      await closeNow(desk.warehouse);
      Object.assign(desk, await open(desk.warehouse.path));
      return reconcileEffects(desk.journal, desk.warehouse, clock.now());
    },
  });
}
