import { withHistoryOf } from '../app/state.js';
import type { Runtime, Workspace } from '../app/workspace.js';
import { exists } from '../files.js';
import { NothingLoadedError } from '../reports/coverage.js';
import { expectSendable, listReports, noReport } from '../reports/definition.js';
import { choosePeriod } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { mailingsOf, reportNotice } from '../steps/mailing.js';
import { pass, type Verdict } from './findings.js';

/**
 * Whether every report can be read, each that has recipients exists and can be sent to them, and the last page
 * and emails of each can be written: a workspace's own queries and templates may be of an earlier version.
 */
export async function tryReports(workspace: Workspace, runtime: Runtime): Promise<Verdict> {
  const { workspaceDir, settings, historyFile } = workspace;
  const { reports, broken } = await listReports(workspaceDir);
  if (broken[0] !== undefined) throw broken[0];
  const names = reports.map(({ name }) => name);
  for (const [name, audiences] of Object.entries(settings.reports.audiences)) {
    const report = reports.find((report) => report.name === name);
    if (report === undefined) throw noReport(name, names);
    for (const audience of audiences) expectSendable(report, audience);
  }
  if (await exists(historyFile))
    await withHistoryOf(workspace, async ({ history, state }) => {
      // Another project would fail in the same way.
      const one = { ...workspace, projects: workspace.projects.slice(0, 1) };
      for (const report of reports) {
        const period = choosePeriod(report.period, undefined, runtime.now(), settings.reports);
        try {
          for (const project of one.projects)
            await (await prepareReport(one, history, project, { report, period })).page();
          for (const mailing of mailingsOf(one, report))
            await (await reportNotice({ place: one, state, reader: history }, mailing, period)).email();
        } catch (error) {
          if (!(error instanceof NothingLoadedError)) throw error;
        }
      }
    });
  return pass(names.join(', '));
}
