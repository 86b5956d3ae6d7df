import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { type Settings, settingsSchema } from '../config/schema.js';
import { day } from '../day.js';
import { messageOf, StorageError } from '../errors.js';
import { writeWhole } from '../files.js';

/** The defaults of a sandbox. The keys are not secret: anyone who can reach a sandbox may use it. */
export const SANDBOX = {
  host: '127.0.0.1',
  apiKey: 'sandbox_key_not_a_secret',
  /** A read-only key; creating jobs and sending messages are refused with 403. */
  readOnlyKey: 'sandbox_read_only_key_not_a_secret',
  projectId: 'prj_sandbox',
  projectName: 'Acme Docs',
  siteUrl: 'https://docs.example.com',
  seed: 1,
  pages: 450,
  jobSeconds: 4,
} as const;

/** The environment of a workspace that uses it. */
export const SANDBOX_ENVIRONMENT = { READERSHIP_API_KEY: SANDBOX.apiKey };

/** Jobs are created, to show every step. */
export const sandboxSettings = (workingDirectory: string): Settings =>
  settingsSchema.parse({
    baseUrl: 'http://127.0.0.1',
    projects: [{ id: SANDBOX.projectId, name: SANDBOX.projectName, siteUrl: SANDBOX.siteUrl }],
    dataDir: resolve(workingDirectory, 'data/sandbox'),
    improve: { mode: 'apply', minWeeklyViews: 60, exclude: ['/changelog/**'] },
    pullRequests: { url: 'https://code.example.com' },
    mail: { from: 'Readership <readership@example.com>' },
    reports: { weekly: { to: ['docs@example.com'] } },
  });

const instant = z.iso.datetime();

const jobOutcome = z.enum(['pull-request', 'no-change', 'failed', 'archived']);
/** How an agent's work can end. */
export type JobOutcome = z.infer<typeof jobOutcome>;

const storedJobSchema = z.object({
  id: z.string(),
  number: z.int().min(1),
  prompt: z.string(),
  createdAt: instant,
  messages: z.array(z.object({ prompt: z.string(), createdAt: instant })),
  /** Decided when the work starts: the agent is active until `endsAt`, and then has this `outcome`. */
  endsAt: instant,
  outcome: jobOutcome,
  /** When a message led to the pull request of a job that had made none. */
  pullRequestFrom: instant.optional(),
});
/** A stored job. Its status is not stored, because it follows from the clock. */
export type StoredJob = z.infer<typeof storedJobSchema>;

const stateSchema = z.object({
  version: z.literal(1),
  seed: z.int(),
  firstDay: z.string().transform(day),
  jobs: z.array(storedJobSchema),
});
/** The state of a sandbox. Traffic is not stored, because it follows from `seed` and `firstDay`. */
type SandboxState = z.infer<typeof stateSchema>;

/**
 * The state, which starts as `initial`: in a JSON file, or in memory without one. A request reads,
 * changes and writes it synchronously, so requests of one process cannot interfere; two processes
 * that write in the same millisecond can.
 */
export class StateStore {
  #state: SandboxState;

  constructor(
    private readonly file: string | undefined,
    initial: SandboxState,
  ) {
    this.#state = initial;
    if (this.#load() === undefined) this.write(initial);
  }

  /** Always current, because another process may have written the file. */
  read(): SandboxState {
    return this.#load() ?? this.#state;
  }

  write(state: SandboxState): void {
    this.#state = state;
    if (this.file === undefined) return;
    try {
      writeWhole(this.file, JSON.stringify(state, null, 1));
    } catch (cause) {
      throw new StorageError(`Cannot write the sandbox's state: ${messageOf(cause)}`, { cause });
    }
  }

  #load(): SandboxState | undefined {
    if (this.file === undefined || !existsSync(this.file)) return undefined;
    try {
      return stateSchema.parse(JSON.parse(readFileSync(this.file, 'utf8')));
    } catch (cause) {
      throw new StorageError(
        `${this.file} cannot be read as the state of a sandbox of this version. Delete it to start a new sandbox.`,
        { cause },
      );
    }
  }
}
