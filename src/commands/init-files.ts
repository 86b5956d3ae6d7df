import { appendFile, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseEnv } from 'node:util';
import { stringify } from 'yaml';
import type { Variants } from '../agents/ranking.js';
import { CONFIG_FILE, DOT_ENV, SMTP_URL_VARIABLE } from '../config/load.js';
import { ConfigurationError, messageOf } from '../errors.js';
import { ignoreMissing, packageFile } from '../files.js';
import { EXAMPLE, type InitAnswers } from './init-answers.js';

export const KEY = 'READERSHIP_API_KEY';
/** A sitemap, and the translations and versions in it. */
export interface FoundSitemap {
  readonly address: string;
  readonly variants: Variants;
}

type Site = InitAnswers & { readonly sitemap: FoundSitemap | undefined };

/**
 * Writes the configuration, adds these secrets to `.env`, which is created if it is missing, and keeps that out of Git: all
 * of it, or nothing. Returns what was written, and the variables that `.env` has.
 */
export async function writeFiles(
  directory: string,
  site: Site,
  secrets: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly written: readonly string[]; readonly stored: ReadonlySet<string> }> {
  const dotEnv = join(directory, DOT_ENV);
  const configuration = join(directory, CONFIG_FILE);
  const before = await readFile(dotEnv, 'utf8').catch(ignoreMissing);
  const known = parseEnv(before ?? '');
  const added = Object.entries(secrets).flatMap(([name, value]) =>
    value === undefined || known[name] === value ? [] : secretLine(name, value),
  );
  let path = configuration;
  try {
    await writeFile(configuration, configurationText(site), { flag: 'wx' });
    path = dotEnv;
    if (before === undefined) await writeFile(dotEnv, newDotEnv(secrets), { flag: 'wx', mode: 0o600 });
    else if (added.length > 0)
      await appendFile(dotEnv, `${before.endsWith('\n') ? '' : '\n'}${added.join('\n')}\n`);
  } catch (cause) {
    if (path === dotEnv) await rm(configuration, { force: true });
    throw new ConfigurationError(
      `Cannot write ${path}: ${messageOf(cause)}. Nothing was written. Use a directory you can write to.`,
      { cause },
    );
  }
  await ignoreSecrets(join(directory, '.gitignore'));
  const written = before === undefined || added.length > 0 ? [CONFIG_FILE, DOT_ENV] : [CONFIG_FILE];
  const stored = Object.entries(parseEnv(await readFile(dotEnv, 'utf8'))).filter(([, value]) => value !== '');
  return { written, stored: new Set(stored.map(([name]) => name)) };
}

/** Keeps the key out of Git. */
async function ignoreSecrets(path: string): Promise<void> {
  const text = (await readFile(path, 'utf8').catch(ignoreMissing)) ?? '';
  if (/^\/?\.env\s*$/m.test(text)) return;
  await writeFile(path, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${DOT_ENV}\n`);
}

/** The schema of the installed version, with which editors complete and check the configuration. */
const SCHEMA = pathToFileURL(packageFile('templates/workspace/readership.schema.json')).href;
const SETTINGS = packageFile('docs/configuration.md');

const flow = (value: unknown): string =>
  stringify(value, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: true }).trim();

/** A configuration of ten lines. What was not answered is there as a comment, to be filled in. */
function configurationText(site: Site): string {
  const { url = EXAMPLE.url, project = EXAMPLE.project, siteUrl, sitemap } = site;
  const name = site.name ?? (siteUrl === undefined ? project : new URL(siteUrl).host);
  const { email = 'docs@example.com' } = site;
  const unlessAnswered = site.email === undefined ? '# ' : '';
  return `# yaml-language-server: $schema=${SCHEMA}
# All settings: ${SETTINGS}
baseUrl: ${flow(url)} # the platform's API
projects:
  - ${flow({ id: project, name, siteUrl })}
${unlessAnswered}reports: { weekly: { to: [${flow(email)}] } } # who gets the weekly email
${unlessAnswered}alerts: { to: [${flow(email)}] } # who gets alerts when something fails
${unlessAnswered}mail: { from: ${flow(`Readership <${email}>`)} } # the sender
improve:
  mode: plan # flags pages for agents; apply lets run create the jobs
${sitemap === undefined ? '' : sitemapText(sitemap)}`;
}

/** What was found, to be switched on or corrected. */
const sitemapText = ({ address, variants }: FoundSitemap): string =>
  `  # sitemap: ${flow(address)} # remove the first # to limit jobs to the pages that it lists\n` +
  (variants.length === 0
    ? ''
    : `  # variants: ${flow(variants)} # translations and versions, detected automatically: only one page of each set gets a job\n`);

/** A new `.env`. */
const newDotEnv = ({
  [KEY]: key = '',
  [SMTP_URL_VARIABLE]: smtpUrl,
}: Readonly<Record<string, string | undefined>>): string => `# Keep this file out of version control.
# An API key from the API keys page of the platform's dashboard.
${secretLine(KEY, key)}
# The mail server. Until it is set, emails are written to data/outbox/. Encode @ : / % in the password as %40 %3A %2F %25.
${smtpUrl === undefined ? `# ${SMTP_URL_VARIABLE}=smtp://USER:PASSWORD@smtp.example.com:587` : secretLine(SMTP_URL_VARIABLE, smtpUrl)}
`;

/** A line of `.env`, quoted where it would be read as something else. */
function secretLine(name: string, value: string): string {
  const lines = ['', "'", '"', '`'].map((quote) => `${name}=${quote}${value}${quote}`);
  const line = lines.find((line) => parseEnv(line)[name] === value);
  if (line === undefined)
    throw new ConfigurationError(
      `No .env file can hold this ${name}. Set it in the environment, and run init again.`,
    );
  return line;
}
