import { z } from 'zod';
import { WEEKDAYS } from '../day.js';
import {
  audiences,
  audiencesIn,
  channels,
  derivedSender,
  recipientProblems,
  recipients,
  sender,
} from './recipients.js';
import { serveSchema } from './serve.js';
import {
  baseAddress,
  cron,
  day,
  httpUrl,
  isUnencrypted,
  isDirectory,
  localPath,
  NAMES_A_USER,
  namesNoUser,
  NOT_A_DATASET_DIRECTORY,
  oneLine,
  pathPattern,
  timezone,
  variableName,
} from './values.js';

const encrypted = (address: ReturnType<typeof baseAddress>) =>
  address.refine((url) => !isUnencrypted(url), 'would send the token unencrypted; write https://…');

/** A project without a name is named by its id. */
const projectSchema = z
  .strictObject({
    id: oneLine.describe('project id, from the API keys page of the dashboard'),
    name: oneLine.optional(),
    siteUrl: httpUrl.optional(),
    apiKeyEnv: variableName.default('READERSHIP_API_KEY'),
    apiKeyExpires: day.optional().describe('status and doctor warn two weeks before'),
    organization: oneLine
      .optional()
      .describe('projects of one organization share one cap, and pause together'),
  })
  .transform(({ name, ...project }) => ({ ...project, name: name ?? project.id }));

const historySchema = z.strictObject({
  start: z
    .union([z.literal('auto'), day], { error: 'write auto, or a day such as 2026-01-31' })
    .default('auto'),
  settleDays: z.int().min(0).max(60).default(3),
  requestsPerHour: z
    .union([z.literal('unlimited'), z.int().min(1)], {
      error: 'write a whole number of at least 1, or unlimited',
    })
    .default('unlimited'),
});

const improveSchema = z.strictObject({
  mode: z.enum(['plan', 'apply']).default('plan'),
  maxJobsPerWeek: z.int().min(1).max(1000).default(5),
  maxOpenPullRequests: z.int().min(1).max(1000).default(10),
  cooldownDays: z.int().min(0).max(3650).default(56),
  minWeeklyViews: z.int().min(0).default(200),
  exclude: z.array(pathPattern).default([]),
  sitemap: z.string().min(1).refine(namesNoUser, NAMES_A_USER).optional(),
  variants: z
    .union([z.literal('auto'), z.array(z.string().regex(/^(?:\/[^/]+)+$/))], {
      error: 'write auto, or a list of the beginnings of paths, such as /fr and /docs/v1',
    })
    .default('auto'),
});

/** Where pull requests are looked up. */
const pullRequestsSchema = z.strictObject({ url: encrypted(baseAddress()).prefault('https://github.com') });

const scheduleSchema = z.strictObject({
  timezone,
  export: cron.default('15 2 * * *'),
  improve: cron.default('0 4 * * 1'),
  poll: cron.default('*/5 * * * *'),
  report: cron.default('0 * * * *'),
});

const mailSchema = z.strictObject({
  from: sender.optional(),
});

const alertsSchema = z.strictObject({
  to: recipients,
  pingUrl: baseAddress('/start and /fail').optional(),
});

/** Every key that is not a setting is the name of a report. */
const reportsSchema = z
  .object({
    firstDayOfWeek: z.enum(WEEKDAYS).default('monday'),
    baseUrl: baseAddress().optional(),
  })
  .catchall(audiences);

const publishSchema = z
  .strictObject({
    parquet: z.string().min(1).refine(isDirectory, NOT_A_DATASET_DIRECTORY).optional(),
    then: z.string().min(1).optional().describe('runs after a publication that changed the dataset'),
  })
  .refine(({ parquet, then }) => then === undefined || parquet !== undefined, {
    path: ['then'],
    message: 'runs after the dataset changed: set publish.parquet too',
  });

/** `readership.yaml`. Every key but `baseUrl` and one project's id has a default. */
export const settingsSchema = z
  .strictObject({
    baseUrl: baseAddress(),
    projects: z
      .array(projectSchema)
      .min(1, 'name at least one project')
      .refine(
        (projects) => new Set(projects.map(({ id }) => id)).size === projects.length,
        'contains a project id twice',
      )
      // Reports of projects with the same name are told apart by their ids.
      .transform((projects) => {
        const nameOf = ({ name, id }: { name: string; id: string }) =>
          projects.filter((other) => other.name === name).length > 1 ? `${name} (${id})` : name;
        return projects.map((project) => ({ ...project, name: nameOf(project) }));
      }),
    allowInsecure: z.boolean().default(false),
    dataDir: localPath.default('data'),
    history: historySchema.prefault({}),
    improve: improveSchema.prefault({}),
    pullRequests: pullRequestsSchema.optional(),
    schedule: scheduleSchema.prefault({}),
    reports: reportsSchema.prefault({}),
    mail: mailSchema.optional(),
    channels,
    alerts: alertsSchema.prefault({}),
    publish: publishSchema.prefault({}),
    /** `start` serves the web app only if this is set. */
    serve: serveSchema.optional(),
  })
  .superRefine((settings, context) => {
    if (!settings.allowInsecure && isUnencrypted(settings.baseUrl))
      context.addIssue({
        code: 'custom',
        path: ['baseUrl'],
        message: 'would send the API key unencrypted: write https://…, or set allowInsecure: true',
      });
    for (const problem of recipientProblems(settings)) context.addIssue({ code: 'custom', ...problem });
  })
  .transform(({ reports, mail = {}, ...settings }) => {
    const { firstDayOfWeek, baseUrl } = reports;
    const audiences = Object.fromEntries(audiencesIn(reports).filter(([, list]) => list.length > 0));
    const from = mail.from ?? derivedSender({ reports, alerts: settings.alerts });
    return {
      ...settings,
      ...(from !== undefined && { mail: { from } }),
      reports: { firstDayOfWeek, timezone: settings.schedule.timezone, baseUrl, audiences },
    };
  });

/** The settings of a workspace, with defaults. */
export type Settings = z.infer<typeof settingsSchema>;
export type ProjectSettings = Settings['projects'][number];
