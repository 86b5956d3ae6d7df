import type { Fault } from '../sandbox/faulty-sandbox.js';
import type { ServedOperation } from '../../src/sandbox/access.js';
import type { Behavior, ServerEvent } from '../mail/mail-server.js';
import { Choice } from './choice.js';
import { mailBehaviors, platformFaults } from './faults.js';
import type { KillPoint } from './preload.js';
import type { KilledChange } from './shim.js';

/** When a command gets a signal: see `KillPoint` and `KilledChange`, or this long after something arrived at a server. */
export type Strike =
  | ({ readonly at: 'point' } & KillPoint)
  | ({ readonly at: 'change' } & KilledChange)
  | ({ readonly at: 'request'; readonly on: ServedOperation; readonly count: number } & LateStrike)
  | ({ readonly at: 'mail'; readonly event: ServerEvent } & LateStrike)
  | ({ readonly at: 'start' } & LateStrike);

interface LateStrike {
  readonly delayMs: number;
  readonly signal: KillPoint['signal'];
}

/** What an earlier crash or a person may have left in the data directory. */
const LITTER = [
  'no lock',
  'no witness',
  'half a state for the history',
  'half a version of the history',
] as const;
export type Litter = (typeof LITTER)[number];

export interface Step {
  readonly advanceMs: number;
  readonly command: readonly string[];
  /** A second command on the same data directory, at the same time. */
  readonly beside: readonly string[] | null;
  readonly faults: readonly Fault[];
  readonly mail: Readonly<Record<string, readonly Behavior[]>>;
  readonly strike: Strike | null;
  readonly litter: Litter | null;
  /** Bytes that can still be written, if the disk can be made that small. */
  readonly diskLeft: number | null;
  /** How far the clock of the command is behind the server's. */
  readonly behindMs: number;
}

export interface Settings {
  readonly requestsPerHour: number | 'unlimited';
  readonly settleDays: number;
  readonly mode: 'plan' | 'apply';
  /** Duration of a week. */
  readonly maxJobs: number;
}

/** A trial, determined by its seed: commands on one data directory, each with its faults. */
export interface Plan {
  readonly seed: number;
  /** `grown` starts with six weeks of history, `new` with none. */
  readonly site: 'grown' | 'new';
  readonly settings: Settings;
  readonly steps: readonly Step[];
  /** Whether a last, unneeded run must change nothing. */
  readonly endsTwice: boolean;
}

export const RECIPIENTS = ['ada@example.com', 'bob@example.com', 'ops@example.com'] as const;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Commands that send email. */
export const MAILING = ['run', 'report'];

const COMMANDS = [
  [6, ['run']],
  [4, ['export']],
  [4, ['improve', '--apply']],
  [2, ['jobs', 'poll']],
  [2, ['jobs', 'message']],
  [2, ['report', 'send', 'weekly']],
  [1, ['publish']],
  [1, ['audit', '--repair']],
] as const satisfies [number, string[]][];

/** The approximate number of statements and file changes of a command on a grown site. */
const POINTS: Readonly<Record<string, number>> = { run: 170, export: 150, jobs: 45, improve: 60 };
const POINTS_OF_FIRST_EXPORT = 330;
const POINTS_OF_OTHERS = 50;

/** The approximate number of changes of both stores, of what is written beside them, and of the witness by a command. */
const CHANGES = 250;

/** More than the platform accepts in an hour. */
const MANY_JOBS = 130;

export function planTrial(seed: number): Plan {
  const choice = new Choice(seed);
  const site = choice.chance(0.25) ? 'new' : 'grown';
  const maxJobs = choice.weighted([12, 3], [6, 8], [1, MANY_JOBS]);
  return {
    seed,
    site,
    settings: {
      // Low enough to be reached within an hour of commands; a new site needs a dozen to find its first day.
      requestsPerHour: choice.pick<number | 'unlimited'>(
        site === 'new' ? ['unlimited', 25, 25, 60] : ['unlimited', 8, 8, 20],
      ),
      settleDays: choice.pick([1, 3, 3]),
      mode: choice.chance(0.6) ? 'apply' : 'plan',
      maxJobs,
    },
    steps: Array.from({ length: choice.whole(3, 5) }, (_, index) =>
      planStep(choice, site, seed * 10 + index),
    ),
    endsTwice: maxJobs !== MANY_JOBS && choice.chance(0.25),
  };
}

function planStep(choice: Choice, site: Plan['site'], number: number): Step {
  const command = planCommand(choice, number);
  const faults = platformFaults(choice);
  const mail = Object.fromEntries(RECIPIENTS.map((recipient) => [recipient, mailBehaviors(choice)]));
  return {
    advanceMs: choice.weighted(
      [4, choice.between(0, 5 * MINUTE_MS)],
      [3, choice.between(5 * MINUTE_MS, 70 * MINUTE_MS)],
      [3, choice.between(HOUR_MS, DAY_MS)],
      [2, choice.between(DAY_MS, 4 * DAY_MS)],
    ),
    command,
    beside: choice.chance(0.12) ? planBeside(choice, number) : null,
    faults,
    mail,
    strike: planStrike(choice, site, command[0] ?? ''),
    litter: choice.chance(0.12) ? choice.pick<Litter>(LITTER) : null,
    diskLeft: choice.chance(0.12) ? Math.floor(2 ** choice.between(12, 21)) : null,
    behindMs: choice.chance(0.1) ? choice.between(0, 55 * MINUTE_MS) : 0,
  };
}

function planCommand(choice: Choice, number: number): readonly string[] {
  const command = choice.weighted<readonly string[]>(...COMMANDS);
  return command[1] === 'message' ? [...command, String(choice.whole(1, 4)), `intent ${number}`] : command;
}

const planBeside = (choice: Choice, number: number): readonly string[] =>
  choice.chance(0.4)
    ? choice.pick<readonly string[]>([
        ['status', '--json'],
        ['sql', 'FROM site_days'],
        ['jobs', 'list', '--json'],
      ])
    : planCommand(choice, number + 5);

/** Requests after which killing a command is interesting: those that cannot be undone, if it sends any. */
const TELLING: Readonly<Record<string, readonly [ServedOperation, ...ServedOperation[]]>> = {
  run: ['views', 'create', 'create', 'job'],
  improve: ['create'],
  jobs: ['message', 'job', 'create'],
};

function planStrike(choice: Choice, site: Plan['site'], command: string): Strike | null {
  const signal = choice.chance(0.15) ? 'SIGTERM' : 'SIGKILL';
  const isFirst = site === 'new' && command !== 'publish';
  const points = isFirst ? POINTS_OF_FIRST_EXPORT : (POINTS[command] ?? POINTS_OF_OTHERS);
  const point = choice.whole(1, points);
  const on = choice.pick<ServedOperation>(TELLING[command] ?? ['views']);
  const count = on === 'views' ? choice.whole(1, 20) : choice.whole(1, 3);
  const delayMs = choice.pick([0, choice.between(0, 8), choice.between(0, 60)]);
  const event = choice.pick<ServerEvent>(['rcpt', 'data', 'accepted']);
  const isMailing = MAILING.includes(command);
  return choice.weighted<Strike | null>(
    [2, null],
    [3, { at: 'point', signal, point, delayMs: null }],
    [2, { at: 'point', signal, point, delayMs: choice.between(0, 4) }],
    [
      4,
      {
        at: 'change',
        change: choice.whole(1, CHANGES),
        isTorn: choice.chance(0.5),
        permille: choice.whole(0, 999),
      },
    ],
    [4, { at: 'request', signal, delayMs, on, count }],
    [isMailing ? 3 : 0, { at: 'mail', signal, delayMs, event }],
    [1, { at: 'start', signal, delayMs: choice.between(0, 1_500) }],
  );
}
