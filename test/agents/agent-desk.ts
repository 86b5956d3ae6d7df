import { type Job, planJob, readJobs } from '../../src/agents/ledger.js';
import { type Message, readMessages } from '../../src/agents/messages.js';
import type { SubmitTask } from '../../src/agents/submit.js';
import { Client } from '../../src/api/client.js';
import { openTransport } from '../api/open-client.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { reconcileEffects } from '../../src/app/open.js';
import type { EffectsJournal } from '../../src/effects/journal.js';
import type { Warehouse } from '../../src/warehouse/warehouse.js';
import { closeNow, journalOf, liveWarehouse } from '../open-warehouse.js';
import { type Clock, clockAt, NOW, openSandbox, type OpenSandbox } from '../sandbox/open-sandbox.js';
import { EVIDENCE } from './reading.js';

/** Everything that jobs need: a live database, the sandbox over HTTP, and one clock for both. */
export interface AgentDesk {
  readonly sandbox: OpenSandbox['sandbox'];
  readonly clock: Clock;
  readonly project: string;
  warehouse: Warehouse;
  journal: EffectsJournal;
  readonly client: Client;
  task(): SubmitTask;
  /** Plans one job per page: `/page-1`, `/page-2`, … */
  plan(count: number): Promise<void>;
  readonly jobs: () => Promise<Job[]>;
  readonly job: (id: number) => Promise<Job>;
  messages(): Promise<Message[]>;
  /** Closes the database and opens it again, as another process would. */
  restart(): ReturnType<typeof reconcileEffects>;
}

export async function agentDesk(options: Partial<SandboxOptions> = {}): Promise<AgentDesk> {
  const clock = clockAt(NOW);
  const { sandbox } = await openSandbox(options, clock);
  const { baseUrl, apiKey, projectId: project } = sandbox;
  const client = new Client({
    ...{ baseUrl, projectId: project, apiKey, keyName: 'READERSHIP_API_KEY', now: clock.now },
    retries: { retries: 0, minDelayMs: 1, maxDelayMs: 1 },
    transport: openTransport({ responseTimeoutMs: 1000 }),
  });
  const warehouse = await liveWarehouse();
  const desk: AgentDesk = {
    ...{ sandbox, clock, project, client, warehouse, journal: await journalOf(warehouse) },
    task: () => ({
      warehouse: desk.warehouse,
      journal: desk.journal,
      client,
      project,
      now: clock.now,
    }),
    plan: async (count) => {
      for (let number = 1; number <= count; number++) {
        const page = { path: `/page-${number}`, reason: 'much read', evidence: EVIDENCE };
        const prompt = `Improve /page-${number}`;
        await planJob(desk.warehouse, { project, page, prompt, now: clock.now() });
      }
    },
    jobs: () => readJobs(desk.warehouse, project),
    job: async (id) => {
      const job = (await readJobs(desk.warehouse, project)).find((candidate) => candidate.id === id);
      if (job === undefined) throw new Error(`no job ${id}`);
      return job;
    },
    messages: () => readMessages(desk.warehouse, project),
    restart: async () => {
      await closeNow(desk.warehouse);
      desk.warehouse = await liveWarehouse(warehouse.path);
      desk.journal = await journalOf(desk.warehouse);
      return reconcileEffects(desk.journal, desk.warehouse, clock.now());
    },
  };
  return desk;
}
