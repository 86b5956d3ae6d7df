import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReadOptions } from '../api/client.js';
import { requestDate } from '../api/clock.js';
import { PausedError, TryLaterError } from '../api/errors.js';
import { connect, type Connection } from '../app/platform.js';
import { withHistory } from '../app/state.js';
import { keepFilesPrivate, type Runtime, type Workspace } from '../app/workspace.js';
import { DOT_ENV, SMTP_URL_VARIABLE } from '../config/load.js';
import { isAddress, seemsIncomplete } from '../config/recipients.js';
import type { ProjectSettings } from '../config/schema.js';
import { addDays, lastEndedDay } from '../day.js';
import { messageOf } from '../errors.js';
import { exists, ignoreMissing } from '../files.js';
import { expectAdditive } from '../export/probe.js';
import { counted } from '../format/numbers.js';
import { isRetired } from '../mail/channel.js';
import { asciiDomain } from '../mail/compose.js';
import { expectSender, tryMailServer } from '../mail/transport.js';
import { NothingLoadedError } from '../reports/coverage.js';
import { expectSendable, listReports, noReport } from '../reports/definition.js';
import { choosePeriod } from '../reports/period.js';
import { prepareReport } from '../reports/render.js';
import { timeLimit } from '../sleep.js';
import { emptyState } from '../state/open.js';
import { mailingsOf, reportNotice } from '../steps/mailing.js';
import { readOwnNotes } from '../steps/notes.js';
import { fail, type CheckResult, found, keyProblem, pass, type Verdict, warn } from './findings.js';
import {
  checkDataset,
  checkDates,
  checkDisk,
  checkPlace,
  checkPrivacy,
  checkWitness,
  tryHistory,
  tryState,
} from './check-storage.js';
import { answers, doesNotAnswer } from './try-platform.js';

const ANSWER_TIMEOUT_MS = 10_000;
/** So few that their last failure is known before the time is over. */
const RETRIES = { retries: 2, minDelayMs: 500, maxDelayMs: 2_000 };

/** Checks everything that a night needs; a check that fails does not stop the others. */
export async function checkWorkspace(workspace: Workspace, runtime: Runtime): Promise<CheckResult[]> {
  keepFilesPrivate();
  const stored = await tryState(workspace, runtime);
  const { history, verdict } = await tryHistory(workspace, stored.state);
  const state = stored.state ?? emptyState();
  const connection = await connect({ ...workspace, maxWaitMs: 0, retries: RETRIES }, runtime, {}, state);
  try {
    const findings = await Promise.all([
      found('configuration', () => configuration(workspace)),
      found('secrets', () => secrets(workspace)),
      found('server', () => server(workspace, runtime)),
      Promise.all(workspace.projects.map((project) => views(project, workspace, connection, runtime))),
      found('reports', () => tryReports(workspace, runtime)),
      found('notes', async () => {
        const notes = await readOwnNotes(workspace);
        return pass(notes.length === 0 ? 'none' : counted(notes.length, 'note'));
      }),
      found('email', () => email(workspace, runtime)),
      ...channels(workspace),
      found('history', () => verdict),
      found('state', () => stored.verdict),
      ...(stored.state === undefined
        ? []
        : [
            found('witness', () => checkWitness(workspace, state, history)),
            found('sends from', () => checkPlace(workspace, state)),
            ...checkDataset(workspace, state),
          ]),
      ...(history === undefined ? [] : [found('dates', () => checkDates(history, state, runtime.now()))]),
      checkPrivacy(workspace),
      found('disk', () => checkDisk(workspace)),
    ]);
    return findings.flat(2);
  } finally {
    await connection.close();
    // Only now, because the requests of the checks are counted in it.
    state.close();
    history?.close();
  }
}

function configuration({ configuration, settings }: Workspace): Verdict {
  const place = configuration === undefined ? 'built in' : configuration.directory;
  return pass(`${place}; ${counted(settings.projects.length, 'project')}, data in ${settings.dataDir}`);
}

async function secrets({ configuration }: Workspace): Promise<Verdict> {
  if (configuration === undefined) return pass('none needed in the sandbox');
  const file = join(configuration.directory, DOT_ENV);
  const found = await stat(file).catch(ignoreMissing);
  if (found === undefined) return pass(`there is no ${file}; secrets come from the environment`);
  if (process.platform === 'win32') return pass(`${file}; on Windows, its permissions are not checked`);
  // This user may read another user's file through its group.
  const others = found.uid === process.getuid?.() ? 0o077 : 0o007;
  if ((found.mode & others) === 0) return pass(`${file} cannot be read by others on this machine`);
  return warn(`Others on this machine may be able to read ${file}: chmod 600 '${file}'`);
}

/** Whether a server answers, and its clock agrees. Any answer will do, since it has a Date header. */
async function server({ configuration }: Workspace, { now, signal }: Runtime): Promise<Verdict> {
  if (configuration === undefined) return pass('the built-in sandbox, with the clock of this machine');
  const { baseUrl } = configuration.settings;
  return requestDate(baseUrl, signal).then(
    (headers) => answers(baseUrl, headers, now()),
    (error: unknown) => doesNotAnswer(baseUrl, error),
  );
}

/**
 * Whether the views of a project can be read, and the days of a range add up: a platform that counts
 * the day in `dateTo` would double every day.
 */
async function views(
  project: ProjectSettings,
  { settings, configuration }: Workspace,
  { clientOf }: Connection,
  { now, signal }: Runtime,
): Promise<CheckResult[]> {
  const { id, apiKeyEnv } = project;
  const problem = keyProblem(project, now());
  if (problem?.verdict === 'fail') return [{ check: 'key', ...problem }];
  const read = (check: string, verdict: Verdict, request: (options: ReadOptions) => Promise<unknown>) =>
    found(check, async () => {
      try {
        await request({ signal: timeLimit(ANSWER_TIMEOUT_MS, signal), isTrial: true });
        return verdict;
      } catch (error) {
        // If only a limit is the reason, nothing is wrong.
        const isLimited =
          error instanceof PausedError || (error instanceof TryLaterError && error.reason === 'rate-limited');
        const words = error instanceof PausedError ? error.words : messageOf(error);
        return (isLimited ? warn : fail)(`${id}: ${words}`);
      }
    });
  const day = lastEndedDay(now());
  const keyName = configuration === undefined ? "the sandbox's key" : apiKeyEnv;
  const key = await read(
    'key',
    problem ?? pass(`${id}: ${keyName} reads views; permission to create jobs not checked`),
    async (options) =>
      clientOf(project).views({ dateFrom: day, dateTo: addDays(day, 1), limit: 1, offset: 0 }, options),
  );
  if (key.verdict === 'fail') return [key];
  const sums = await read(
    'sums of days',
    pass(`${id}: the totals of days add up to those of their range`),
    (options) => expectAdditive(clientOf(project), addDays(day, -settings.history.settleDays - 1), options),
  );
  return [key, sums];
}

/**
 * Whether every report can be read, each that has recipients exists and can be sent to them, and the last page
 * and emails of each can be written: a workspace's own queries and templates may be of an earlier version.
 */
async function tryReports(workspace: Workspace, runtime: Runtime): Promise<Verdict> {
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
    await withHistory(workspace, async ({ history, state }) => {
      // Another project would fail in the same way.
      const one = { ...workspace, projects: workspace.projects.slice(0, 1) };
      for (const report of reports) {
        const now = runtime.now();
        const period = choosePeriod(report.period, undefined, now, settings.reports);
        try {
          for (const project of one.projects)
            await (await prepareReport(one, history, project, { report, period, now })).page();
          for (const mailing of mailingsOf(one, report))
            await (await reportNotice({ place: one, state, reader: history, now }, mailing, period)).email();
        } catch (error) {
          if (!(error instanceof NothingLoadedError)) throw error;
        }
      }
    });
  return pass(names.join(', '));
}

async function email(
  { configuration, settings, outboxDir }: Workspace,
  { signal }: Runtime,
): Promise<Verdict> {
  const url = configuration?.environment[SMTP_URL_VARIABLE] ?? '';
  const sender = settings.mail?.from;
  const words = sender === undefined ? '' : `; emails come from ${sender.address} (mail.from)`;
  const audiences = [settings.alerts, ...Object.values(settings.reports.audiences).flat()];
  const addresses = audiences.flatMap(({ to }) => to.filter(isAddress));
  if (url !== '') {
    expectSender(url, sender);
    const answer = await tryMailServer(url, sender && asciiDomain(sender), signal);
    const incomplete = addresses.find(seemsIncomplete);
    return incomplete === undefined
      ? pass(answer + words)
      : warn(`${incomplete} may be incomplete: its domain has no dot. ${answer}${words}`);
  }
  if (configuration === undefined || addresses.length === 0)
    return pass(`emails would be written to ${outboxDir}`);
  return warn(`Emails are only written to ${outboxDir}: to send them, set ${SMTP_URL_VARIABLE}.`);
}

/** Whether each channel has an address, and a secret where it needs one. Nothing is sent. */
const channels = ({ credentials }: Workspace): Promise<CheckResult>[] =>
  [...credentials.channels].map(([name, channel]) =>
    found('channel', () =>
      'problem' in channel
        ? fail(`${name}: ${channel.problem}`)
        : isRetired(channel)
          ? fail(
              `${name}: Microsoft retired connectors, and with them addresses at ${channel.url.host}. Create a workflow in Teams and use its address: docs/reports.md`,
            )
          : pass(`${name}: posts to ${channel.kind} at ${channel.url.host}; nothing was sent`),
    ),
  );
