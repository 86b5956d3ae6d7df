import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { day } from '../../src/day.js';
import { readResults, storeResults } from '../../src/service/results.js';
import { markDiffering, recordDayFailure } from '../../src/state/days.js';
import { recordStepEnd, recordStepStart, RESULT_STEPS } from '../../src/state/runs.js';
import { StepRunner } from '../../src/steps/step.js';
import { openTestState } from '../open-state.js';
import { NOW } from '../sandbox/open-sandbox.js';
import { partsOf } from '../steps/parts-of.js';
import { tempDir } from '../temp-dir.js';
import { newStore } from '../open-history.js';

/** A workspace with a history, notes, a sitemap and a template, whose steps are all done. */
async function setUp({ dueAt, timezone = 'UTC' }: { dueAt?: Date; timezone?: string } = {}) {
  const { state } = await openTestState();
  const workspaceDir = await tempDir();
  const historyFile = join(workspaceDir, 'history.duckdb');
  const sitemap = join(workspaceDir, 'sitemap.xml');
  const template = join(workspaceDir, 'templates/weekly.html.hbs');
  const reportsDir = join(workspaceDir, 'data/reports');
  const page = join(reportsDir, 'prj_1/weekly-2026-W46.html');
  await mkdir(join(reportsDir, 'prj_1'), { recursive: true });
  await mkdir(join(workspaceDir, 'templates'));
  for (const file of [historyFile, sitemap, template, page, join(workspaceDir, 'notes.yaml')])
    await writeFile(file, 'before');
  const parts = partsOf(await newStore(), {
    state,
    settings: { improve: { sitemap }, schedule: { timezone } },
    workspace: {
      workspaceDir,
      historyFile,
      reportsDir,
      dataset: { location: 'dataset', projects: [], then: undefined },
    },
  });
  const { workspace } = parts;
  const run = async (now = NOW) => {
    const known = await readResults(workspace, state, now);
    const runner = new StepRunner(parts);
    for (const step of RESULT_STEPS)
      if (!known.current.has(step))
        await runner.step(step, () => Promise.resolve({ detail: null, summary: 'done', dueAt }));
    await storeResults(workspace, state, known, runner, now);
    return [...runner.done.keys()];
  };
  const current = async (now = NOW, changed: object = {}) => [
    ...(await readResults({ ...workspace, ...changed }, state, now)).current,
  ];
  expect(await run()).toEqual([...RESULT_STEPS]);
  return { state, workspaceDir, historyFile, sitemap, template, reportsDir, page, run, current };
}

const LATER = new Date(NOW.getTime() + 60_000);

describe('results of steps', () => {
  it('stay right while nothing changes', async () => {
    const { current, run } = await setUp();
    expect(await current(LATER)).toEqual([...RESULT_STEPS]);
    expect(await run()).toEqual([]);
    expect(await current(LATER)).toEqual([...RESULT_STEPS]);
  });

  it.each(['notes.yaml', 'sitemap.xml', 'templates/weekly.html.hbs', 'history.duckdb'])(
    'are not right anymore once %s is written again or replaced',
    async (name) => {
      const { current, workspaceDir } = await setUp();
      await writeFile(join(workspaceDir, name), 'longer than before');
      expect(await current()).toEqual([]);
      const replaced = await setUp();
      const file = join(replaced.workspaceDir, name);
      await writeFile(`${file}.new`, 'before');
      await rename(`${file}.new`, file);
      expect(await replaced.current()).toEqual([]);
    },
  );

  it('are not right anymore with a new template, without one, or with a new report', async () => {
    const { current, template, run, workspaceDir } = await setUp();
    await rm(template);
    expect(await current()).toEqual([]);
    await run();
    await mkdir(join(workspaceDir, 'reports/own'), { recursive: true });
    await writeFile(join(workspaceDir, 'reports/own/report.yaml'), 'title: Own\n');
    expect(await current()).toEqual([]);
  });

  it('are not right anymore once a page of a report is gone, and are once it is written again', async () => {
    const { current, page, reportsDir, run } = await setUp();
    await writeFile(page, 'again');
    expect(await current()).toEqual([...RESULT_STEPS]);
    await rm(page);
    expect(await current()).toEqual([]);
    await run();
    expect(await current()).toEqual([...RESULT_STEPS]);
    await rm(reportsDir, { recursive: true });
    expect(await current()).toEqual([]);
  });

  it('are not right anymore with other settings, secrets or projects', async () => {
    const { current } = await setUp();
    expect(await current(NOW, { settingsDigest: 'another' })).toEqual([]);
    expect(await current(NOW, { projects: [] })).toEqual([]);
  });

  it('are not right anymore after midnight (UTC or local), before they were stored, or once something is due', async () => {
    const { current } = await setUp();
    expect(await current(new Date('2026-11-30T00:00:00Z'))).toEqual([]);
    expect(await current(new Date(NOW.getTime() - 1))).toEqual([]);
    // A week ends at midnight in the time zone of the schedule.
    const inTokyo = await setUp({ timezone: 'Asia/Tokyo' });
    expect(await inTokyo.current(new Date('2026-11-18T14:59:59.999Z'))).toEqual([...RESULT_STEPS]);
    expect(await inTokyo.current(new Date('2026-11-18T15:00:00Z'))).toEqual([]);
    const due = await setUp({ dueAt: LATER });
    expect(await due.current(new Date(LATER.getTime() - 1))).toEqual([...RESULT_STEPS]);
    expect(await due.current(LATER)).toEqual([]);
  });

  it('but for loading days, are not right anymore once a job, an email or a skip has changed', async () => {
    const { current, state } = await setUp();
    await state.transaction(() =>
      state.run(
        "INSERT INTO skips (project, path, skipped_at) VALUES ('prj_1', '/a', '2026-11-18T05:00:00.000Z')",
      ),
    );
    expect(await current()).toEqual(['export']);
  });

  it('are not right anymore once a later run failed, was put off or was killed, until one is done', async () => {
    for (const outcome of ['failed', 'later', 'interrupted', 'running'] as const) {
      const { current, state, run } = await setUp();
      await recordStepStart(state, 'by hand', 'export', LATER);
      if (outcome !== 'running')
        await recordStepEnd(state, 'by hand', 'export', {
          outcome,
          summary: '',
          resume_at: null,
          now: LATER,
        });
      expect(await current(LATER)).toEqual(RESULT_STEPS.filter((step) => step !== 'export'));
      expect(await run(LATER)).toEqual(['export']);
      expect(await current(LATER)).toEqual([...RESULT_STEPS]);
    }
  });

  it('of loading days are not right anymore once a day failed, or was found to differ', async () => {
    const at = { project: 'prj_1', day: day('2026-11-17') };
    const failing = await setUp();
    await recordDayFailure(failing.state, { ...at, now: NOW }, 'cut off');
    expect(await failing.current()).not.toContain('export');
    const differing = await setUp();
    await markDiffering(differing.state, at, NOW);
    expect(await differing.current()).not.toContain('export');
  });
});
