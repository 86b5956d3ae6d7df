import { messageOf } from '../errors.js';
import type { Log } from '../terminal/log.js';
import type { Listener } from './with-steps.js';

/** Logs what the service does: steps, jobs and failed days; each loaded day only for `debug`. */
export const logging = (log: Log): Listener => ({
  onWait: (until, why) => {
    log.info({ until, why }, 'requests wait');
  },
  onReconciled: (words) => {
    log.warn(words);
  },
  onSkew: (words) => {
    log.warn(words);
  },
  onRetry: (error, retriesLeft) => {
    log.warn({ retriesLeft, error: error.message }, 'a request is tried again');
  },
  observer: {
    onStepStart: (step) => {
      log.info({ step }, `${step} begins`);
    },
    onStepEnd: (step, { outcome, summary, resume_at: resumeAt }) => {
      const level = outcome === 'failed' ? 'error' : outcome === 'later' ? 'warn' : 'info';
      log[level](
        { step, outcome, summary, ...(resumeAt === null ? {} : { resumeAt }) },
        `${step} ${outcome}`,
      );
    },
    onAlertFailed: (error) => {
      log.warn({ error }, 'an alert could not be given');
    },
    onExportPlan: (project, { days, requests }) => {
      log.info({ project: project.id, days: days.length, requests }, 'days to load');
    },
    onDay: ({ id: project }, result) => {
      const { day } = result;
      if (result.outcome === 'failed')
        log.warn({ project, day, error: messageOf(result.error) }, 'a day failed');
      else log.debug({ project, day, rows: result.rows }, 'a day is loaded');
    },
    onJob: ({ id: job, project, path, state, pr_link: pullRequest }) => {
      log.info({ project, job, path, state, pullRequest }, 'a job changed');
    },
  },
});
