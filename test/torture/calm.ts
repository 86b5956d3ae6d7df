import type { Books } from './books.js';
import { openDays } from './checks/history.js';
import { openJobs } from './checks/jobs.js';
import { differences } from './checks/kept.js';
import { openMails } from './checks/mails.js';
import { unnamedIn } from './checks/named.js';
import { runCommand } from './command.js';
import { endFaults } from './ends.js';
import { RECIPIENTS } from './plan.js';
import type { World } from './world.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The number of commands after which everything must be right, however much was left open. */
const MOST_COMMANDS = 25;

const [ADA, BOB] = RECIPIENTS;
const DUE_MAILS = [
  ['weekly', ADA],
  ['weekly', BOB],
  ['improve', ADA],
] as const;

/**
 * The calm after the faults: days later, with a working platform and mail server, and a person who settles what only a
 * person can. Everything must end up right. Returns the number of commands that it took.
 */
export async function calmDown(world: World): Promise<number> {
  world.sandbox.setFaults([]);
  for (const recipient of RECIPIENTS) world.mailServer.behaviors.set(recipient, []);
  world.clock.advance(5 * DAY_MS);
  let hasRun = false;
  for (let commands = 0; commands < MOST_COMMANDS; commands += 1) {
    const command = nextCommand(world, hasRun);
    if (command === undefined) return commands + (await closeTheBooks(world));
    // A day that did not add up, such as one of which a page was kept for days, is read again the next night.
    // So is a job sent that found no room in its week: at the latest on Monday.
    if (hasRun && command[0] !== 'jobs') world.clock.advance(DAY_MS);
    const code = await calmCommand(world, command);
    if (command[0] !== 'jobs') hasRun = command[0] === 'run' && code === 0;
    // The hour of the budget, or the hours after which an email is retried.
    world.clock.advance(code === 75 ? 62 * MINUTE_MS : code === 1 ? 5 * HOUR_MS : MINUTE_MS);
  }
  world.report('converges', [`not caught up after ${MOST_COMMANDS} commands`]);
  return MOST_COMMANDS + (await closeTheBooks(world));
}

const isInconsistent = ({ state }: Books['days'][number]): boolean => state === 'inconsistent';

async function calmCommand(world: World, command: readonly string[]): Promise<number | null> {
  const { task, clock } = world;
  world.note(`$ ${command.join(' ')}  in calm`);
  const end = await runCommand(task, command, { clock: clock.settingBehind(0), kill: null });
  world.note(`ended with ${end.code ?? end.signal ?? ''}\n${end.output}`);
  world.report('ends', endFaults(command, end, false));
  if (end.signal !== null) world.report('ends', [`${command.join(' ')} was ended by ${end.signal}`]);
  const before = world.live;
  const after = await world.look();
  if (command[0] === 'run' && before !== undefined && after !== undefined)
    world.report(
      'named',
      unnamedIn(end.output, before, after).map((what) => `run does not name ${what}`),
    );
  return end.code;
}

/** What a person would type next; undefined when all is done. */
function nextCommand({ live, sandbox, plan }: World, hasRun: boolean): readonly string[] | undefined {
  if (live === undefined || !hasRun) return ['run'];
  const remote = sandbox.inspect().jobs;
  const job = live.jobs.find(({ state }) => state === 'unknown');
  if (job !== undefined) {
    const created = remote.find(({ prompt }) => prompt === job.prompt);
    return ['jobs', 'settle', String(job.id), ...(created ? ['--sent', created.id] : ['--not-sent'])];
  }
  const message = live.messages.find(({ state }) => state === 'unknown');
  if (message !== undefined) {
    const to = live.jobs.find(({ id }) => id === message.job)?.remote_id;
    const hasArrived = remote.some(
      ({ id, messages }) => id === to && messages.some(({ prompt }) => prompt === message.prompt),
    );
    return ['jobs', 'settle', String(message.job), hasArrived ? '--sent' : '--not-sent'];
  }
  if (live.jobs.some(({ state }) => state === 'planned'))
    return plan.settings.mode === 'plan' ? ['improve', '--apply'] : ['run'];
  if (openJobs(live).length > 0) return ['jobs', 'poll'];
  return live.days.some(isInconsistent) ? ['run'] : undefined;
}

/** Everything must be as if nothing had happened, and if the trial says so, another run must change nothing. */
async function closeTheBooks(world: World): Promise<number> {
  const { live, plan, clock, truth } = world;
  if (live === undefined) {
    world.report('converges', ['there is no history at all']);
    return 0;
  }
  const platform = { truth, now: clock.now(), behindMs: world.behindMs };
  world.report('converges', [
    ...openDays(live, platform, plan.settings.settleDays),
    ...openJobs(live),
    ...openMails(live, DUE_MAILS),
  ]);
  const history = await world.lookAtHistory();
  if (history !== undefined)
    world.report(
      'converges',
      differences(history, live).map((what) => `the history and the stores: ${what}`),
    );
  if (!plan.endsTwice) return 0;
  const before = outcomeOf(world, live);
  await calmCommand(world, ['run']);
  const after = outcomeOf(world, world.live ?? live);
  const changed = Object.keys(before).filter(
    (part) => JSON.stringify(Reflect.get(after, part)) !== JSON.stringify(Reflect.get(before, part)),
  );
  world.report(
    'converges',
    changed.map((part) => `a needless run has changed ${part}`),
  );
  return 1;
}

const outcomeOf = ({ sandbox, mailServer }: World, { days, jobs, messages, emails }: Books) => ({
  final: days.filter(({ state }) => state === 'final'),
  ...{ jobs, messages, emails },
  remote: sandbox.inspect().jobs,
  mails: [...mailServer.accepted].map(([recipient, mails]) => [recipient, mails.length]),
});
