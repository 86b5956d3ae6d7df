import { pathToFileURL } from 'node:url';
import { parseEnv } from 'node:util';
import { stringify } from 'yaml';
import { SMTP_URL_VARIABLE } from '../config/load.js';
import { ConfigurationError } from '../errors.js';
import { packageFile } from '../files.js';
import { type InitAnswers, EXAMPLE, KEY } from './init-answers.js';

/** The schema of the installed version, with which editors complete and check the configuration. */
const SCHEMA = pathToFileURL(packageFile('templates/workspace/readership.schema.json')).href;
const SETTINGS = packageFile('docs/configuration.md');

const flow = (value: unknown): string =>
  stringify(value, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: true }).trim();

/** A configuration of ten lines. What was not answered is there as a comment, to be filled in. */
export function configurationText(answers: InitAnswers): string {
  const { url = EXAMPLE.url, project = EXAMPLE.project, name, siteUrl, email, from, sitemap } = answers;
  const site = { id: project, name: name ?? project, ...(siteUrl !== undefined && { siteUrl }) };
  const reader = email ?? 'docs@example.com';
  const unlessAnswered = (answer: string | undefined) => (answer === undefined ? '# ' : '');
  return `# yaml-language-server: $schema=${SCHEMA}
# All settings: ${SETTINGS}
baseUrl: ${flow(url)} # the platform's API
projects:
  - ${flow(site)}
${unlessAnswered(email)}reports: { weekly: { to: [${flow(reader)}] } } # who gets the weekly email
${unlessAnswered(email)}alerts: { to: [${flow(reader)}] } # who is told when something fails
${unlessAnswered(from)}mail: { from: ${flow(senderOf(from ?? reader))} } # the sender
improve:
  mode: plan # proposes pages for agents; apply lets run create the jobs
${sitemap === undefined ? '' : `  sitemap: ${flow(sitemap)} # only pages that it lists get a job\n`}`;
}

const senderOf = (text: string): string => (text.includes('<') ? text : `Readership <${text}>`);

/** A new `.env`. */
export const secretsText = (key: string | undefined): string => `# Keep this file out of version control.
# An API key from the API keys page of the platform's dashboard.
${key === undefined ? `${KEY}=` : keyLine(key)}
# The mail server. Until it is set, emails are written to data/outbox/. Encode @ : / % in the password as %40 %3A %2F %25.
# ${SMTP_URL_VARIABLE}=smtp://USER:PASSWORD@smtp.example.com:587
`;

/** The key's line of `.env`, quoted where it would be read as something else. */
export function keyLine(key: string): string {
  const lines = ['', "'", '"', '`'].map((quote) => `${KEY}=${quote}${key}${quote}`);
  const line = lines.find((line) => parseEnv(line)[KEY] === key);
  if (line === undefined)
    throw new ConfigurationError(
      `No .env file can hold this key. Set ${KEY} in the environment, and run init again.`,
    );
  return line;
}
