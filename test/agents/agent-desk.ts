import { expect } from 'vitest';
import { planJob, planMessage } from '../../src/agents/jobs.js';
import type { SubmitTask } from '../../src/agents/submit.js';
import { Client } from '../../src/api/client.js';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { type NewJob, readJob, readJobs } from '../../src/state/jobs.js';
import { readMessages } from '../../src/state/messages.js';
import { recover } from '../../src/state/sender.js';
import type { Bindings } from '../../src/state/state.js';
import { openTransport } from '../api/open-client.js';
import { closeNow, newStore } from '../open-history.js';
import { stateBeside } from '../open-state.js';
import { clockAt, NOW, openSandbox } from '../sandbox/open-sandbox.js';
import { type GivenParts, partsOf } from '../steps/parts-of.js';
import { jobFor, RULES } from './reading.js';

export type AgentDesk = Awaited<ReturnType<typeof agentDesk>>;

/** Everything that jobs need: a history, a state, the sandbox over HTTP, and one clock for both. */
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
    const history = await newStore(path);
    const { state, sender, worker, close } = await stateBeside(history);
    return { history, state, sender, worker, closeState: close };
  };
  const desk = { sandbox, clock, project, client, ...(await open()) };
  return Object.assign(desk, {
    task: (): SubmitTask => ({
      state: desk.state,
      sender: desk.sender,
      client,
      rules: { ...RULES, maxJobsPerWeek: 1_000, maxOpenPullRequests: 1_000 },
      sendsAll: true,
      project,
      now: clock.now,
    }),
    /** The parts of a step that works with it. */
    parts: ({
      settings,
      workspace,
      platform,
    }: Omit<GivenParts, 'state' | 'sender' | 'effects' | 'session'> = {}) =>
      partsOf(desk.history, {
        state: desk.state,
        sender: desk.sender,
        settings: { projects: [{ id: project }], ...settings },
        workspace: { ...workspace },
        platform: { clientOf: () => client, ...platform },
        session: { now: clock.now },
      }),
    /** Plans one job per page: `/page-1`, `/page-2`, … */
    plan: async (count: number, first = 1) => {
      for (let number = first; number < first + count; number++) {
        const job = jobFor(`/page-${number}`, clock.now(), { project });
        await desk.state.transaction(() => planJob(desk.state, job));
      }
    },
    /** Plans the job of one page. */
    planJob: (path: string, given: Partial<NewJob> = {}) =>
      desk.state.transaction(() => planJob(desk.state, jobFor(path, clock.now(), { project, ...given }))),
    /** Plans a message to a job. */
    planMessage: (id: number, prompt: string) => {
      const job = readJob(desk.state, id) ?? expect.fail(`no job ${id}`);
      const message = { origin: 'typed', prompt, now: clock.now() } as const;
      return desk.state.transaction(() => planMessage(desk.state, job, message));
    },
    jobs: () => readJobs(desk.state, project),
    job: (id: number) => readJob(desk.state, id) ?? expect.fail(`no job ${id}`),
    messages: () => readMessages(desk.state, project),
    /** Changes the state as nothing of Readership would. */
    change: (sql: string, values?: Bindings) => desk.state.transaction(() => desk.state.run(sql, values)),
    /** Closes everything and opens it again, as another process would. */
    restart: async () => {
      await closeNow(desk.history);
      await desk.closeState();
      Object.assign(desk, await open(desk.history.path));
      return recover(desk.state, desk.worker, clock.now());
    },
  });
}
