import { readWorkspace } from '../app/workspace.js';
import { nextScheduled } from '../config/cron.js';
import { serveAt, type ServeSettings } from '../config/serve.js';
import { LockedError, messageOf } from '../errors.js';
import { type Log, logging, openLog } from '../print/log.js';
import { unsettledLines } from '../print/status.js';
import { Service } from '../service/loop.js';
import type { Unsettled } from '../service/status.js';
import type { WebOptions } from '../web/app.js';
import type { Web } from '../web/serve.js';
import { workspaceCommand, EMAIL_ENVIRONMENT, LISTENING } from './command.js';

export const start = workspaceCommand('start', {
  summary: 'keep running, with each step on its schedule',
  description:
    'Runs the five steps of `run` on their schedules, until it is stopped. It catches up on what it missed, so it can be stopped and started at any time. A step that failed is retried after a minute, then with growing delays of up to an hour. With serve.password or serve.header in the configuration, it serves the web app too, with /healthz. Other commands can be used meanwhile; those that load or send wait until no step is running. It logs to standard output: JSON lines, or readable lines on a terminal. SIGTERM, SIGINT and SIGHUP end it within seconds, with exit code 0.',
  options: LISTENING,
  examples: `
  readership start --sandbox        try it without an account
  readership start                  under a service manager such as systemd
  readership start | jq .summary    the log is JSON`,
  environment: EMAIL_ENVIRONMENT,
  endsByInterruption: () => true,
  run: async ({ port, host, ...options }, runtime) => {
    const workspace = await readWorkspace(options, runtime);
    runtime.output.goesOnUnread = true;
    // A missing key, or an invalid address of the mail server, is an error now, and not every night.
    const { settings, projects, credentials } = workspace;
    credentials.openTransport();
    for (const project of projects) credentials.apiKeyOf(project);
    const log = await openLog(runtime.output);
    const onTickFailed = (error: unknown): void => {
      const isLater = error instanceof LockedError;
      const [level, outcome] = isLater ? (['warn', 'later'] as const) : (['error', 'failed'] as const);
      const words = isLater ? 'the steps wait for another process' : 'not all steps ran';
      log[level]({ outcome, error: messageOf(error) }, words);
    };
    const onUnsettled = (unsettled: Unsettled): void => {
      for (const line of unsettledLines(unsettled)) log.warn(line);
    };
    const service = new Service(workspace, runtime, { ...logging(log), onTickFailed, onUnsettled });
    const warn = (message: string | Error): void => log.warn(messageOf(message));
    log.info({ schedule: settings.schedule, dataDir: workspace.dataDir }, 'started');
    const serve = settings.serve && serveAt(settings.serve, { host, port });
    const web = await openWeb(serve, { workspace, runtime }, log);
    const { timezone, ...expressions } = settings.schedule;
    for (const [step, expression] of Object.entries(expressions))
      log.info({ step, next: nextScheduled(expression, timezone, runtime.now()) }, `${step} is scheduled`);
    try {
      await service.run({ info: warn, warn, error: warn, debug: () => undefined });
    } finally {
      await web?.close();
    }
    log.info('stopped; all stored data is complete');
    return 0;
  },
});

/** Serves the web app as well, if the configuration says so. */
async function openWeb(
  settings: ServeSettings | undefined,
  given: Omit<WebOptions, 'settings' | 'onError'>,
  log: Log,
): Promise<Web | undefined> {
  if (settings === undefined) return undefined;
  if (settings.auth === 'link') {
    log.info('the web app is not served: set serve.password, or use readership serve');
    return undefined;
  }
  const { serveWeb } = await import('../web/serve.js');
  const onError = (error: string): void => log.error({ error }, 'a page failed');
  const web = await serveWeb({ ...given, settings, onError });
  log.info({ address: web.address }, 'serving the web app');
  return web;
}
