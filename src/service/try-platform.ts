import { Client } from '../api/client.js';
import { skewOf, skewWords } from '../api/clock.js';
import { ApiError, RefusedError, TryLaterError, VIEWS_OPERATION } from '../api/errors.js';
import { Transport } from '../api/transport.js';
import type { Runtime } from '../app/workspace.js';
import { apiKeyOf, bucketNameOf, type Environment } from '../config/load.js';
import { firstProblem } from '../config/problems.js';
import { settingsSchema } from '../config/schema.js';
import { isUnencrypted } from '../config/values.js';
import { lastEndedDay } from '../day.js';
import { ConfigurationError } from '../errors.js';
import { connectionFailure, type ResponseHeaders } from '../network.js';
import { fail, type CheckResult, found, pass, type Verdict, warn } from './findings.js';
import { tryViews } from './try-views.js';

/** No platform has a job with this id, or a path with this name. */
const NOTHING = 'readership-doctor';

/**
 * Tries a platform before anything is configured, with six requests that change nothing: whether it
 * has the API, what the key may do, and what a history costs. `onViews` is called before each request for views, with
 * the bucket in which it counts. Throws a `ConfigurationError`.
 */
export async function tryPlatform(
  url: string,
  id: string,
  environment: Environment,
  { now, signal, output }: Runtime,
  onViews: (bucket: string) => void = () => undefined,
): Promise<CheckResult[]> {
  if (isUnencrypted(url))
    throw new ConfigurationError('--url would send the API key unencrypted: write https://…');
  const parsed = settingsSchema.safeParse({ baseUrl: url, projects: [{ id }] });
  const [project] = parsed.data?.projects ?? [];
  if (!parsed.success || project === undefined)
    throw new ConfigurationError(`--url: ${firstProblem(parsed.error)}`);
  const settings = parsed.data;
  const { baseUrl } = settings;
  const apiKey = apiKeyOf(environment, project);
  output.hide([apiKey]);
  output.note(`Trying ${baseUrl} with up to six requests, which change nothing.`);
  let headers: ResponseHeaders = {};
  const transport = new Transport({ onHeaders: (received) => (headers = received) });
  const clientAt = (baseUrl: string) =>
    new Client({
      baseUrl,
      projectId: id,
      apiKey,
      keyName: project.apiKeyEnv,
      now,
      retries: { retries: 0, minDelayMs: 0, maxDelayMs: 0 },
      transport,
      onRequest: ({ name }) => {
        if (name === VIEWS_OPERATION) onViews(bucketNameOf(project, environment));
      },
    });
  const client = clientAt(baseUrl);
  try {
    const ofPath = await refusalOf(clientAt(`${baseUrl}/${NOTHING}`), signal);
    return [
      { check: 'server', ...answers(baseUrl, headers, now()) },
      ...(await tryViews(client, settings, lastEndedDay(now()), signal)),
      await found('agent jobs', async () => jobsVerdict(await refusalOf(client, signal), ofPath)),
    ];
  } catch (error) {
    // Without an answer, there is nothing else to try.
    if (!(error instanceof TryLaterError)) throw error;
    return [{ check: 'server', ...doesNotAnswer(baseUrl, error.cause) }];
  } finally {
    await transport.close();
  }
}

/** How the platform refuses to show a job that does not exist; undefined if it shows one. Throws if it does not answer. */
async function refusalOf(client: Client, signal: AbortSignal): Promise<ApiError | undefined> {
  try {
    await client.job(NOTHING, signal);
    return undefined;
  } catch (error) {
    const isAnswer =
      error instanceof ApiError && !(error instanceof TryLaterError && error.cause !== undefined);
    if (isAnswer) return error;
    throw error;
  }
}

function jobsVerdict(ofJob: ApiError | undefined, ofPath: ApiError | undefined): Verdict {
  if (ofJob === undefined)
    return warn('answers for a job that does not exist: this may not be the documented API');
  if (!(ofJob instanceof RefusedError) || ofJob.status !== 404)
    return warn(`${ofJob.message} Exports and reports work without agents.`);
  if (ofPath instanceof RefusedError && ofPath.status === 404 && wordsOf(ofPath) === wordsOf(ofJob))
    return warn(
      'not checked: the platform gives the same answer for a path that does not exist. Exports and reports work without agents.',
    );
  return pass('returned 404 for a made-up job, as expected. Not checked: permission to create jobs.');
}

/** The server's words without the address, which many servers repeat. */
const wordsOf = ({ words }: RefusedError): string =>
  words.replaceAll(/\S*\/\S*/g, '').replaceAll(NOTHING, '');

/** Clocks closer than this agree. */
const MAX_SKEW_MS = 60_000;

/** A server that answered with these headers, and whether its clock agrees. */
export function answers(baseUrl: string, headers: ResponseHeaders, now: Date): Verdict {
  const skewMs = skewOf(headers, now);
  if (skewMs === undefined)
    return warn(`${baseUrl} answers without a readable Date: the clock was not checked.`);
  const apart = Math.abs(skewMs);
  if (apart < MAX_SKEW_MS) return pass(`${baseUrl} answers, and its clock agrees`);
  return (apart < 60 * MAX_SKEW_MS ? warn : fail)(skewWords(baseUrl, skewMs, now));
}

export const doesNotAnswer = (baseUrl: string, cause: unknown): Verdict =>
  fail(`${baseUrl} does not answer (${connectionFailure(cause)}). Check the address and the network.`);
