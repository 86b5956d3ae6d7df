import { setTimeout as delay } from 'node:timers/promises';
import { type Ended, type Running, startCommand } from './command.js';
import { calmDown } from './calm.js';
import { endFaults, mayHang } from './ends.js';
import { type Plan, RECIPIENTS, type Step, type Strike } from './plan.js';
import type { TrialResult } from './properties.js';
import { type Bench, World } from './world.js';

/** How long a command may take, in real time, on a busy machine. */
const LONGEST_MS = 90_000;
/** The silence after which a command that a fault may have left waiting is given up. */
const PATIENCE_MS = 2_500;
const LOOK_EVERY_MS = 400;

/** Runs one trial: its commands with their faults, and then the calm in which everything must end up right. */
export async function runTrial(plan: Plan, bench: Bench): Promise<TrialResult> {
  const world = await World.open(plan, bench);
  let commands = 0;
  let killed = 0;
  let starved = 0;
  for (const step of plan.steps) {
    const ended = await takeStep(world, step);
    commands += ended.length;
    killed += ended.filter(({ signal }) => signal !== null).length;
    if (step.diskLeft !== null && world.disk !== undefined) starved += 1;
    await world.look();
    await world.askStatus();
  }
  commands += await calmDown(world);
  const evidence = await world.close();
  return { seed: plan.seed, violations: world.violations, commands, killed, starved, evidence };
}

async function takeStep(world: World, step: Step): Promise<Ended[]> {
  const { clock, task, sandbox, mailServer } = world;
  clock.advance(step.advanceMs);
  if (step.litter !== null) await world.leave(step.litter);
  if (step.diskLeft !== null) await world.disk?.leaveRoom(step.diskLeft);
  sandbox.setFaults(step.faults);
  for (const recipient of RECIPIENTS) mailServer.behaviors.set(recipient, [...(step.mail[recipient] ?? [])]);
  world.behindMs = Math.max(world.behindMs, step.behindMs);
  world.note(`$ ${step.command.join(' ')}  ${JSON.stringify({ ...step, command: undefined })}`);

  const setting = clock.settingBehind(step.behindMs);
  const { strike } = step;
  const kill = strike?.at === 'point' ? strike : null;
  const killed = strike?.at === 'change' ? strike : null;
  const main = startCommand(task, step.command, { clock: setting, kill }, killed);
  const beside = step.beside && startCommand(task, step.beside, { clock: setting, kill: null });
  if (strike !== null && strike.at !== 'change') arm(world, main, strike);
  const both = [main, ...(beside === null ? [] : [beside])];
  const isOver = watch(world, both);
  const ended = await Promise.all(both.map((running) => endInTime(running, step, world)));
  await isOver;
  if (step.diskLeft !== null) await world.disk?.makeRoom();
  world.onArrival = () => undefined;
  world.onMail = () => undefined;
  for (const [index, end] of ended.entries())
    world.report('ends', endFaults(index === 0 ? step.command : (step.beside ?? []), end, strike !== null));
  return ended;
}

/** Arranges for a signal that depends on an event outside the command. */
function arm(world: World, { child }: Running, strike: Exclude<Strike, { readonly at: 'change' }>): void {
  const kill = () => {
    if (strike.delayMs === 0) child.kill(strike.signal);
    else setTimeout(() => child.kill(strike.signal), strike.delayMs ?? 0);
  };
  let seen = 0;
  if (strike.at === 'start') kill();
  if (strike.at === 'request')
    world.onArrival = (operation) => {
      if (operation !== strike.on) return;
      seen += 1;
      if (seen === strike.count) kill();
    };
  if (strike.at === 'mail')
    world.onMail = (event) => {
      if (event === strike.event) kill();
    };
}

/** Checks the history repeatedly while commands run. */
async function watch(world: World, running: readonly Running[]): Promise<void> {
  const over = Promise.all(running.map(({ ended }) => ended)).then(() => 'over' as const);
  while ((await Promise.race([over, delay(LOOK_EVERY_MS, 'not yet' as const)])) !== 'over')
    await world.lookAtHistory();
}

/** Waits for the end of a command; one that a fault left hanging is killed after a time of silence. */
async function endInTime({ child, ended }: Running, step: Step, world: World): Promise<Ended> {
  const startedMs = performance.now();
  const hangs = mayHang(step);
  const isLate = () => performance.now() - startedMs > LONGEST_MS;
  const isStuck = () =>
    hangs && world.lastSignMs > startedMs && performance.now() - world.lastSignMs > PATIENCE_MS;
  const timer = setInterval(() => {
    if (isLate() || isStuck()) child.kill('SIGKILL');
  }, 250);
  const end = await ended;
  clearInterval(timer);
  world.note(`ended with ${end.code ?? end.signal ?? ''}\n${end.output}`);
  if (!hangs && isLate())
    world.report('ends', [`${step.command.join(' ')} did not end within ${LONGEST_MS / 1000} s`]);
  return end;
}
