import { type Command, InvalidArgumentError } from 'commander';
import { extname } from 'node:path';
import { DURATION_FORM, isLakeLocation, NOT_A_LAKE_LOCATION, parseDuration } from '../config/values.js';
import { parseShard, type Shard } from '../config/shard.js';
import type { Runtime } from '../app/workspace.js';
import { type Day, parseDay } from '../day.js';
import { ConfigurationError, type ExitCode } from '../errors.js';

/**
 * Runs the work of a command, and makes its exit code that of the process: also after an
 * interruption, when that is how the command ends.
 */
export type Act = (
  work: (runtime: Runtime) => Promise<ExitCode>,
  options?: { readonly endsByInterruption?: boolean },
) => Promise<void>;

/** The options of every command except `init` and `sandbox`. */
export const withWorkspaceOptions = (command: Command): Command =>
  command
    .option(
      '--config <file>',
      'configuration to use; paths in it are relative to it (default: readership.yaml)',
    )
    .option('--sandbox', 'use the embedded sandbox instead: needs no account, keeps data in data/sandbox/')
    .option(
      '--shard <i/n>',
      'only shard i of n of the projects, with its own database, such as 2/8',
      shardArgument,
    );

export const withProjectOption = (command: Command): Command =>
  command.option('--project <id>', 'only this project of the configuration');

/** What commands that run steps write with `--json`. */
export const JSON_LOG = 'write one JSON object per line, like the log of start';

/** The format for the name of `--output`; `hint` lists the known names. */
export function formatOf<Format>(
  file: string,
  formats: Readonly<Record<string, Format>>,
  hint: string,
): Format {
  const format = formats[extname(file).toLowerCase()];
  if (format === undefined) throw new ConfigurationError(`${file}: ${hint}`);
  return format;
}

export function dayArgument(text: string): Day {
  const day = parseDay(text);
  if (day === undefined) throw new InvalidArgumentError('Write a day as YYYY-MM-DD, such as 2026-01-31.');
  return day;
}

function shardArgument(text: string): Shard {
  const shard = parseShard(text);
  if (shard === undefined)
    throw new InvalidArgumentError('Write I/N, counted from 1, such as 2/8 for the second of eight.');
  return shard;
}

export function lakeArgument(text: string): string {
  if (text === '') throw new InvalidArgumentError('Use a directory or s3://bucket/prefix.');
  if (!isLakeLocation(text)) throw new InvalidArgumentError(`This is ${NOT_A_LAKE_LOCATION}.`);
  return text;
}

export function durationArgument(text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs === undefined) throw new InvalidArgumentError(`This is not a duration: ${DURATION_FORM}.`);
  return durationMs;
}

const environmentHelp = (mail: string): string => `
Environment (or .env next to the configuration):
  READERSHIP_API_KEY     the admin API key; a project can use another variable
  READERSHIP_CODE_HOST_TOKEN
                         reads pull requests of private repositories (pullRequests in readership.yaml)
${mail}  NO_COLOR               no colors`;

/** For commands that call the platform but send no email. */
export const PLATFORM_ENVIRONMENT_HELP = environmentHelp('');

/** For commands that also send email. */
export const ENVIRONMENT_HELP =
  environmentHelp(`  READERSHIP_SMTP_URL    the mail server, such as smtps://user:password@smtp.example.com;
                         without it, emails are written to data/outbox/
`);
