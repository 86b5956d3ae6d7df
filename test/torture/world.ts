import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServedOperation } from '../../src/sandbox/access.js';
import { type Sandbox, startSandbox } from '../sandbox/faulty-sandbox.js';
import { type MailServer, type ServerEvent, startMailServer } from '../mail/mail-server.js';
import { type Books, readBooks, readCarried } from './books.js';
import { type Arrival, budgetFaults, uncountedRequests } from './checks/budget.js';
import { historyFaults } from './checks/history.js';
import { jobFaults } from './checks/jobs.js';
import { losses } from './checks/kept.js';
import { attemptFaults, recordFaults, type Witness } from './checks/records.js';
import { mailFaults } from './checks/mails.js';
import { unknownIn, unnamedIn } from './checks/named.js';
import { SmallDisk } from '../small-disk.js';
import { Clock } from './clock.js';
import { runCommand, type Task } from './command.js';
import type { Litter, Plan } from './plan.js';
import type { Property, Violation } from './properties.js';
import { makeWorkspace, siteOf, START } from './site.js';
import { Truth } from './truth.js';

/** What all trials of a session share: the command, the preloaded module, and the history that some start with. */
export interface Bench {
  readonly program: string;
  readonly preload: string;
  readonly shim: string | undefined;
  readonly grown: string;
}

/** The environment of one trial: its data directory, platform, mail server and clock, and its violations. */
export class World {
  readonly violations: Violation[] = [];
  readonly arrivals: Arrival[] = [];
  /** Called for every request that arrives at the platform, and for every step of an email. */
  onArrival: (operation: ServedOperation) => void = () => undefined;
  onMail: (event: ServerEvent) => void = () => undefined;
  /** When a command last did something visible, by the clock of `performance`. */
  lastSignMs = 0;
  /** The largest delay of a command's clock. */
  behindMs = 0;
  live: Books | undefined;
  #hasHistory: boolean;
  readonly #log: string[] = [];

  private constructor(
    readonly plan: Plan,
    readonly task: Task,
    readonly clock: Clock,
    readonly truth: Truth,
    readonly sandbox: Sandbox,
    readonly mailServer: MailServer,
    /** The disk with the data; undefined if it cannot be mounted. */
    readonly disk: SmallDisk | undefined,
  ) {
    this.#hasHistory = plan.site === 'grown';
  }

  static async open(plan: Plan, { program, preload, shim, grown }: Bench): Promise<World> {
    const directory = await mkdtemp(join(tmpdir(), `readership-torture-${plan.seed}-`));
    const clock = new Clock(START);
    const site = siteOf(plan);
    const sandbox = await startSandbox({
      ...{ now: clock.now, jobSeconds: 4, usesPerHour: 10_000, ...site },
      onRequest: (operation, url) => {
        world.arrivals.push({ operation, url, atMs: clock.now().getTime() });
        world.lastSignMs = performance.now();
        world.onArrival(operation);
      },
    });
    const truth = new Truth(site, () => sandbox.inspect().improvements);
    const mailServer = await startMailServer();
    await mkdir(join(directory, 'data'));
    const disk = await SmallDisk.mountedOn(join(directory, 'data'));
    await makeWorkspace(directory, sandbox.baseUrl, plan.settings, plan.site === 'grown' ? grown : undefined);
    const env = {
      READERSHIP_API_KEY: sandbox.apiKey,
      READERSHIP_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
    };
    const task = { program, preload, shim, directory, env };
    const world = new World(plan, task, clock, truth, sandbox, mailServer, disk);
    mailServer.onEvent = (event) => {
      world.lastSignMs = performance.now();
      world.onMail(event);
    };
    return world;
  }

  get dataDir(): string {
    return join(this.task.directory, 'data');
  }

  get historyFile(): string {
    return join(this.dataDir, 'history.duckdb');
  }

  get stateFile(): string {
    return join(this.dataDir, 'state.db');
  }

  get witnessFile(): string {
    return join(this.task.directory, '.readership.yaml.sent');
  }

  /** What the witness says; undefined if there is none. */
  async readWitness(): Promise<Witness | undefined> {
    const text = existsSync(this.witnessFile) ? await readFile(this.witnessFile, 'utf8') : '';
    return text === '' ? undefined : (JSON.parse(text.split('\n', 1)[0] ?? '') as Witness);
  }

  /** A line in the log of the trial, which is kept where a property is violated. */
  note(line: string): void {
    this.#log.push(`${this.clock.now().toISOString()}  ${line}`);
  }

  report(property: Property, details: readonly string[]): void {
    for (const detail of details) {
      // A problem is found again by every later check, but is reported once.
      if (this.violations.some((known) => known.property === property && known.detail === detail)) continue;
      this.note(`VIOLATION of ${property}: ${detail}`);
      this.violations.push({ seed: this.plan.seed, property, detail });
    }
  }

  async leave(litter: Litter): Promise<void> {
    switch (litter) {
      case 'no lock':
        return rm(join(this.dataDir, 'worker.lock'), { force: true });
      case 'no witness':
        return rm(this.witnessFile, { force: true });
      case 'half a state for the history':
        return writeFile(`${this.historyFile}.state`, 'half of it');
      case 'half a version of the history':
        await writeFile(`${this.historyFile}.next-1`, 'half');
        await writeFile(`${this.historyFile}.next-1.wal`, 'of it');
        await mkdir(`${this.historyFile}.next-1.tmp`, { recursive: true });
        return;
    }
  }

  /** Checks the history, at any moment. */
  async lookAtHistory(): Promise<Books | undefined> {
    if (!existsSync(this.historyFile)) {
      if (this.#hasHistory) this.report('file', ['the history is gone']);
      return undefined;
    }
    this.#hasHistory = true;
    try {
      const history = await readCarried(this.historyFile);
      this.report('file', [...recordFaults(history), ...historyFaults(history, this.#platform())]);
      return history;
    } catch (error) {
      this.report('file', [`the history cannot be read: ${String(error)}`]);
      return undefined;
    }
  }

  /** Whether `status` names everything whose outcome is unknown. */
  async askStatus(): Promise<void> {
    const { live, task, clock } = this;
    if (live === undefined || unknownIn(live).length === 0) return;
    const preloaded = { clock: clock.settingBehind(0), kill: null };
    const { code, output } = await runCommand(task, ['status'], preloaded);
    this.note(`status ended with ${code ?? ''}\n${output}`);
    this.report(
      'named',
      unnamedIn(output, live, live).map((what) => `status does not name ${what}`),
    );
  }

  /** Checks everything, while no command runs. */
  async look(): Promise<Books | undefined> {
    const before = this.live;
    try {
      this.live = (await readBooks(this.dataDir)) ?? this.live;
    } catch (error) {
      this.report('kept', [`the stores cannot be read: ${String(error)}`]);
    }
    const history = await this.lookAtHistory();
    const books = this.live;
    if (books === undefined) return undefined;
    const { requestsPerHour } = this.plan.settings;
    this.report('records', [...recordFaults(books), ...attemptFaults(books, await this.readWitness())]);
    this.report('history', historyFaults(books, this.#platform()));
    this.report('jobs', jobFaults(books, this.sandbox.inspect().jobs));
    this.report('emails', mailFaults(books, this.mailServer.accepted));
    this.report('budget', budgetFaults(this.arrivals, requestsPerHour));
    if (requestsPerHour !== 'unlimited')
      this.report('budget', uncountedRequests(books, this.arrivals, this.clock.now(), this.behindMs));
    if (before !== undefined) this.report('kept', losses(before, books));
    if (history !== undefined) this.report('file', losses(history, books));
    return books;
  }

  #platform = () => ({ truth: this.truth, now: this.clock.now(), behindMs: this.behindMs });

  /** Stops the servers. Keeps the directory, with a log, if a property was violated. */
  async close(): Promise<string | undefined> {
    await this.sandbox.close();
    await this.mailServer.close();
    const { directory } = this.task;
    const isEvidence = this.violations.length > 0;
    if (isEvidence) await cp(join(directory, 'data'), join(directory, 'evidence'), { recursive: true });
    await this.disk?.unmount();
    if (!isEvidence) {
      await rm(directory, { recursive: true });
      return undefined;
    }
    await writeFile(join(directory, 'plan.json'), JSON.stringify(this.plan, null, 2));
    await writeFile(join(directory, 'log.txt'), this.#log.join('\n'));
    return directory;
  }
}
