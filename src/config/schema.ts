import { z } from 'zod';
import { type Day, parseDay, WEEKDAYS } from '../day.js';
import { isSafe } from '../format/text.js';
import { type MailAddress, parseMailAddress, parseSender, type Sender } from './mail-address.js';
import { cronProblem } from './cron.js';
import { serveSchema } from './serve.js';

/** A day written `YYYY-MM-DD`. */
const daySchema = z.string().transform((text, context): Day => {
  const day = parseDay(text);
  if (day !== undefined) return day;
  context.addIssue(`not a day: write YYYY-MM-DD, such as 2026-01-31`);
  return z.NEVER;
});

/** Whether a text names a directory of this machine. */
export const isLocal = (path: string): boolean => !/^[a-z][a-z0-9+.-]+:\/\//i.test(path);
const NOT_LOCAL = 'not a directory of this machine; name a local one';

/** Whether a text names a directory of this machine, or a place in object storage. */
export const isLakeLocation = (text: string): boolean =>
  isLocal(text) || /^s3:\/\/[a-z0-9][a-z0-9.-]+(\/[^?#]*)?$/.test(text);
export const NOT_A_LAKE_LOCATION =
  'not a directory or s3://bucket/prefix; for other stores that speak S3, write s3:// and set publish.endpoint';

const DURATION_UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const SIZE_UNITS = { MB: 1e6, GB: 1e9, TB: 1e12 };

/** As long as a timer of Node.js can run. */
const MAX_DURATION_MS = 24 * 24 * DURATION_UNITS.h;
export const DURATION_FORM = 'write a whole number and ms, s, m or h, such as 2m, up to 576h';

/** Milliseconds in a length of time such as `500ms`, `30s`, `2m` or `1h`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const durationMs = amountOf(text, DURATION_UNITS);
  return durationMs !== undefined && durationMs <= MAX_DURATION_MS ? durationMs : undefined;
}

function amountOf(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, amount, unit = ''] = /^(\d{1,7})\s*([a-zA-Z]+)$/.exec(text.trim()) ?? [];
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined;
  return amount === undefined || factor === undefined ? undefined : Number(amount) * factor;
}

/** A length of time such as `30s`, `2m` or `1h`, as milliseconds. */
const durationSchema = z.string().transform((text, context): number => {
  const durationMs = parseDuration(text);
  if (durationMs !== undefined) return durationMs;
  context.addIssue(`not a length of time: ${DURATION_FORM}`);
  return z.NEVER;
});

/** A size such as `512MB` or `2GB`, as bytes. */
const sizeSchema = z.string().transform((text, context): number => {
  const size = amountOf(text, SIZE_UNITS);
  if (size !== undefined && size >= 100e6 && size <= 1e15) return size;
  context.addIssue('not a size: write a whole number and MB, GB or TB, such as 2GB, from 100MB on');
  return z.NEVER;
});

const sqlSchema = z.strictObject({
  maxMemory: sizeSchema.default(2e9),
  maxTempSpace: sizeSchema.default(10e9),
  timeout: durationSchema.default(300_000),
});

const namesNoUser = (url: string): boolean => !/^https?:[/\\]*[^/\\]*@/i.test(url);
const NAMES_A_USER = 'contains a user name or password; secrets belong in the environment';

const httpUrl = z
  .url({ protocol: /^https?$/, error: 'not an address: write https://…' })
  .refine(namesNoUser, NAMES_A_USER);

/** An address that paths are added to. */
const baseAddress = httpUrl
  .refine((url) => !/[?#]/.test(url), 'contains a query or a fragment; paths are added to its end')
  .transform((url) => url.replace(/\/+$/, ''));

/** Whether requests leave this machine without TLS. */
const sendsKeyInTheClear = (baseUrl: string): boolean => {
  if (!URL.canParse(baseUrl)) return false;
  const { protocol, hostname } = new URL(baseUrl);
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
};

const encrypted = (address: typeof baseAddress) =>
  address.refine((url) => !sendsKeyInTheClear(url), 'would send the token unencrypted; write https://…');

const ONE_LINE = 'write text on one line, without characters that do not show';

/** Text of subjects and headings. Joiners are part of emoji and of some scripts. */
const oneLine = z
  .string()
  .min(1, ONE_LINE)
  .refine((text) => isSafe(text.replace(/[\u200c\u200d]/g, '')), ONE_LINE);

/** A project without a name goes by its id. */
const projectSchema = z
  .strictObject({
    id: oneLine.describe('project id, from the API keys page of the dashboard'),
    name: oneLine.optional(),
    siteUrl: httpUrl.optional(),
    apiKeyEnv: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'not the name of an environment variable')
      .default('READERSHIP_API_KEY'),
    organization: oneLine.optional().describe('projects of one organization share its hourly limit'),
  })
  .transform(({ name, ...project }) => ({ ...project, name: name ?? project.id }));

const historySchema = z.strictObject({
  start: z
    .union([z.literal('auto'), daySchema], { error: 'write auto, or a day such as 2026-01-31' })
    .default('auto'),
  settleDays: z.int().min(0).max(60).default(3),
  requestsPerHour: z
    .union([z.literal('unlimited'), z.int().min(1)], {
      error: 'write a whole number of at least 1, or unlimited',
    })
    .default(100),
  concurrency: z.int().min(1).max(32).default(16),
  maxWait: durationSchema.default(120_000),
});

const improveSchema = z.strictObject({
  mode: z.enum(['plan', 'apply']).default('plan'),
  maxJobsPerRun: z.int().min(1).max(100).default(5),
  maxJobsPerWeek: z.int().min(1).max(1000).default(5),
  cooldownDays: z.int().min(0).max(3650).default(56),
  minWeeklyViews: z.int().min(0).default(200),
  readingShare: z
    .number()
    .gt(0, 'write a share such as 0.8')
    .max(1, 'write a share such as 0.8')
    .default(0.8),
  humanWeight: z.number().min(0).max(100).default(1),
  aiWeight: z.number().min(0).max(100).default(1),
  exclude: z.array(z.string().min(1)).default(['/llms*.txt', '/**/openapi.*']),
  sitemap: z.string().min(1).refine(namesNoUser, NAMES_A_USER).optional(),
  /** Of 0.1.0; does nothing any more. */
  askWhenNoChange: z.boolean().optional(),
  maxPromptLength: z.int().min(200).max(100_000).default(8_000),
});

/** Where pull requests are looked up. The addresses of the public hosts are known, and that of an own host's API. */
const pullRequestsSchema = z
  .strictObject({
    host: z.enum(['github', 'gitlab'], { error: 'write github or gitlab' }),
    url: encrypted(baseAddress).optional(),
    apiUrl: encrypted(baseAddress).optional(),
  })
  .transform(({ host, url = `https://${host}.com`, apiUrl }) => {
    const own = url + (host === 'github' ? '/api/v3' : '/api/v4');
    return { host, url, apiUrl: apiUrl ?? (url === 'https://github.com' ? 'https://api.github.com' : own) };
  });

const pollSchema = z.strictObject({
  minDelay: durationSchema.default(5_000),
  maxDelay: durationSchema.default(300_000),
});

const isTimezone = (name: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
};

const timezoneSchema = z
  .string()
  .refine(isTimezone, 'not a time zone: write a name such as Europe/Zurich, or UTC')
  .default('UTC');

export const cronSchema = z.string().superRefine((text, context) => {
  const problem = cronProblem(text);
  if (problem === undefined) return;
  const form = "minute, hour, day, month and weekday, such as '15 2 * * *'";
  context.addIssue(`not a cron expression: ${problem}; write ${form}`);
});

const scheduleSchema = z.strictObject({
  timezone: timezoneSchema,
  export: cronSchema.default('15 2 * * *'),
  improve: cronSchema.default('0 4 * * 1'),
  poll: cronSchema.default('*/5 * * * *'),
  report: cronSchema.default('0 * * * *'),
});

const addressSchema = z.string().transform((text, context): MailAddress => {
  const address = parseMailAddress(text);
  if (address !== undefined) return address;
  context.addIssue('not an email address: write one such as docs@example.com');
  return z.NEVER;
});

const senderSchema = z.string().transform((text, context): Sender => {
  const sender = parseSender(text);
  if (sender !== undefined) return sender;
  context.addIssue('not a sender: write docs@example.com, or Readership <docs@example.com>');
  return z.NEVER;
});

const mailSchema = z.strictObject({
  from: senderSchema,
  unsubscribe: addressSchema.optional(),
});

/** Each once. */
const recipientsSchema = z
  .array(addressSchema)
  .max(500)
  .transform((addresses) => [...new Set(addresses)])
  .default([]);

const NOT_AN_AUDIENCE =
  'no such setting; the recipients of a report are written as { to: [docs@example.com] }';

const NO_SUCH_KEY = 'no such setting; an audience has to, where and digest';

const audienceSchema = z.strictObject(
  {
    to: recipientsSchema,
    /** Only the pages whose paths fit, such as `/sdks/**`. */
    where: z
      .string()
      .regex(/^[/*]\S*$/, 'not a pattern of paths: write one such as /sdks/**')
      .refine(isSafe, ONE_LINE)
      .optional(),
    /** One email about all projects instead of one for each. */
    digest: z.boolean().default(false),
  },
  { error: ({ code }) => (code === 'invalid_type' ? NOT_AN_AUDIENCE : undefined) },
);
/** Who gets a report by email, and which part of it. */
export type Audience = z.infer<typeof audienceSchema>;

/** One audience, or a list of them. */
const audiencesSchema = z.unknown().transform((value, context): Audience[] => {
  const parsed = Array.isArray(value)
    ? z.array(audienceSchema).safeParse(value, { reportInput: true })
    : audienceSchema.transform((audience) => [audience]).safeParse(value, { reportInput: true });
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues)
    if (issue.code !== 'unrecognized_keys')
      context.addIssue({ code: 'custom', path: issue.path, message: issue.message });
    else
      for (const key of issue.keys)
        context.addIssue({ code: 'custom', path: [...issue.path, key], message: NO_SUCH_KEY });
  return z.NEVER;
});

const alertsSchema = z.strictObject({
  to: recipientsSchema,
  pingUrl: httpUrl
    .refine(
      (url) => !/[?#]/.test(url),
      'contains a query or a fragment; /start and /fail are added to its end',
    )
    .transform((url) => url.replace(/\/+$/, ''))
    .optional(),
});

/** Every key that is not a setting names a report. */
const reportsSchema = z
  .object({
    firstDayOfWeek: z.enum(WEEKDAYS).default('monday'),
    timezone: timezoneSchema,
    patienceHours: z.number().min(0).max(168).default(24),
    baseUrl: baseAddress.optional(),
  })
  .catchall(audiencesSchema);

const isAudiences = (entry: [string, unknown]): entry is [string, Audience[]] => Array.isArray(entry[1]);

/** The reports that the configuration has recipients for, each with its audiences. */
const audiencesIn = (reports: object): [string, Audience[]][] =>
  Object.entries(reports)
    .filter(isAudiences)
    .map(([report, audiences]) => [report, audiences.filter(({ to }) => to.length > 0)]);

const databaseSchema = z.strictObject({ maxMemory: sizeSchema.default(1e9) });

const publishSchema = z.strictObject({
  parquet: z.string().min(1).refine(isLakeLocation, NOT_A_LAKE_LOCATION).optional(),
  endpoint: httpUrl.optional(),
  region: oneLine.optional(),
  keepReplaced: durationSchema
    .refine((durationMs) => durationMs >= 60_000, 'at least 1m, so that readers can finish')
    .default(86_400_000),
});

/** `readership.yaml`. Every key but `baseUrl` and one project's id has a default. */
export const settingsSchema = z
  .strictObject({
    baseUrl: baseAddress,
    projects: z
      .array(projectSchema)
      .min(1, 'name at least one project')
      .refine(
        (projects) => new Set(projects.map(({ id }) => id)).size === projects.length,
        'contains a project id twice',
      ),
    allowInsecure: z.boolean().default(false),
    dataDir: z.string().min(1).refine(isLocal, NOT_LOCAL).default('data'),
    history: historySchema.prefault({}),
    improve: improveSchema.prefault({}),
    poll: pollSchema.prefault({}),
    pullRequests: pullRequestsSchema.optional(),
    schedule: scheduleSchema.prefault({}),
    reports: reportsSchema.prefault({}),
    mail: mailSchema.optional(),
    alerts: alertsSchema.prefault({}),
    publish: publishSchema.prefault({}),
    database: databaseSchema.prefault({}),
    sql: sqlSchema.prefault({}),
    /** `start` serves the web app only where this is set. */
    serve: serveSchema.optional(),
  })
  .superRefine(({ baseUrl, allowInsecure, reports, alerts, mail }, context) => {
    if (!allowInsecure && sendsKeyInTheClear(baseUrl))
      context.addIssue({
        code: 'custom',
        path: ['baseUrl'],
        message: 'would send the API key unencrypted; write https://…, or set allowInsecure: true',
      });
    const mailed = [...audiencesIn(reports), ['alerts', [{ to: alerts.to }]] as const];
    for (const [name, audiences] of mailed) {
      const path = name === 'alerts' ? ['alerts', 'to'] : ['reports', name, 'to'];
      const all = audiences.flatMap(({ to }) => to);
      const twice = all.find((address, index) => all.indexOf(address) !== index);
      if (twice !== undefined)
        context.addIssue({
          ...{ code: 'custom', path: path.slice(0, -1) },
          message: `${twice} is in two audiences; a report goes to each address once`,
        });
      if (mail === undefined && all.length > 0)
        context.addIssue({
          ...{ code: 'custom', path },
          message: 'needs mail.from, the sender, such as Readership <docs@example.com>',
        });
    }
  })
  .transform(({ reports, ...settings }) => {
    const { firstDayOfWeek, timezone, patienceHours, baseUrl } = reports;
    const audiences = Object.fromEntries(audiencesIn(reports).filter(([, list]) => list.length > 0));
    return { ...settings, reports: { firstDayOfWeek, timezone, patienceHours, baseUrl, audiences } };
  });

/** The settings of a workspace, defaults filled in. */
export type Settings = z.infer<typeof settingsSchema>;
export type ProjectSettings = Settings['projects'][number];
