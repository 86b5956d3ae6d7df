import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { format, resolveConfig } from 'prettier';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readWorkspace } from '../src/app/workspace.js';
import { day } from '../src/day.js';
import { logging, openLog } from '../src/print/log.js';
import { Service } from '../src/service/loop.js';
import { runSql } from '../src/sql/answer.js';
import { formatAnswer } from '../src/sql/formats.js';
import { colorsOf } from '../src/terminal/output.js';
import { type History, openHistory } from '../src/history/history.js';
import { env, serveSandbox, workspaceOf } from './commands/workspace.js';
import { openTestState } from './open-state.js';
import { runtimeIn } from './run-cli.js';
import { clockAt } from './sandbox/open-sandbox.js';
import { useSmallReports } from './small-reports.js';

const QUESTIONS = join(import.meta.dirname, '../docs/questions.md');

/** A question's SQL, and the table of its answer if it has one already. */
const ASKED = /```sql\n([^]+?)```\n(?:\n(?:\|.*\n)+)?/g;

const FIRST_DAY = day('2026-05-18');
const SETTINGS = `
history: { start: ${FIRST_DAY} }
improve: { mode: apply, exclude: ['/changelog/**'] }
`;
/** When the service runs: for the backfill, for settled days and ended jobs, weeks later, and a night later. */
const HOURS_BETWEEN = [0, 24, 48 * 24, 24];

/** Merges every pull request three days after its job was planned. */
const MERGE_ALL = "UPDATE jobs SET merged_on = date(planned_at, '+3 days') WHERE pr_link IS NOT NULL";

/** The history of a site after a service has run, with every table in use. */
async function storedHistory(): Promise<string> {
  const clock = clockAt(new Date('2026-09-29T13:00:00Z'));
  const sandbox = await serveSandbox({ now: clock.now, firstDay: FIRST_DAY, pages: 200 });
  const cwd = await useSmallReports(await workspaceOf(sandbox, SETTINGS));
  const { runtime } = runtimeIn(cwd, { environment: env, now: clock.now });
  const workspace = await readWorkspace({}, runtime);
  const onTickFailed = (error: unknown) => {
    throw error;
  };
  const service = new Service(workspace, runtime, {
    ...logging(await openLog(runtime.output)),
    onTickFailed,
    onUnsettled: () => undefined,
  });
  for (const [tick, hours] of HOURS_BETWEEN.entries()) {
    clock.advance(hours * 3600);
    await service.tick();
    if (tick !== 1) continue;
    const { state, close } = await openTestState(join(cwd, 'data'));
    await state.transaction(() => state.run(MERGE_ALL));
    await close();
  }
  return workspace.historyFile;
}

let history: History;
beforeAll(async () => {
  history = await openHistory(await storedHistory());
});
afterAll(() => {
  history.close();
});

const plain = { colors: colorsOf(), width: 0, maxRows: 0, isTerminal: false };

/** The answer as `readership sql --format markdown` writes it. */
async function answerTo(sql: string): Promise<string> {
  const answer = (await runSql(history.connection, sql)) ?? expect.fail();
  return text(formatAnswer(answer, 'markdown', plain));
}

it('docs/questions.md has twenty questions with the right answers (update: npx vitest run questions -u)', async () => {
  const page = await readFile(QUESTIONS, 'utf8');
  const pieces: string[] = [];
  let written = 0;
  for (const { 0: block, 1: sql = '', index } of page.matchAll(ASKED)) {
    const answer = await answerTo(sql);
    expect(answer.split('\n').length, `rows in the answer to ${sql}`).toBeGreaterThan(3);
    expect(answer, sql).not.toMatch(/NaN|Infinity|undefined/);
    pieces.push(page.slice(written, index), `\`\`\`sql\n${sql}\`\`\`\n\n${answer}`);
    written = index + block.length;
  }
  expect(pieces).toHaveLength(2 * 20);
  const answered = [...pieces, page.slice(written)].join('');
  const style = await resolveConfig(QUESTIONS);
  await expect(await format(answered, { ...style, parser: 'markdown' })).toMatchFileSnapshot(QUESTIONS);
});
