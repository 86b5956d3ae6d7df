import { z } from 'zod';
import { type Day, dayOf } from '../day.js';

/** When a pull request was merged, or closed without being merged. A merged one may count as closed, too. */
export interface Review {
  readonly mergedOn: Day | null;
  readonly closedOn: Day | null;
}

/** A pull request in a list. */
export interface PullRequest extends Review {
  /** False for what a list contains besides pull requests. */
  readonly isPullRequest: boolean;
  readonly link: string;
  readonly number: number;
  /** Its title and description. */
  readonly text: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** What differs between the kinds of code hosts. */
export interface Dialect {
  /** Matches the path of a link to a pull request: the repository, and the number. */
  readonly link: RegExp;
  /** The API path of a pull request. */
  readonly one: (repository: string, number: number | string) => string;
  readonly review: z.ZodType<Review>;
  /** The history of a pull request, if only that says when it was merged. */
  readonly history?: { readonly path: string; readonly days: z.ZodType<Day | null> };
  /** A page of the pull requests that changed since a moment, in the order of their last changes. */
  readonly list: (repository: string, since: string) => string;
  readonly listed: z.ZodType<readonly PullRequest[]>;
  readonly pageLength: number;
  /** The files of a pull request, after its own path. */
  readonly files: (page: number) => string;
  readonly names: z.ZodType<readonly string[]>;
}

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text));
const moment = time.transform(dayOf);
const text = z
  .string()
  .nullish()
  .transform((given) => given ?? '');

/** Fields that GitHub and GitLab have in common. */
const review = z
  .object({ state: z.string(), merged_at: moment.nullish(), closed_at: moment.nullish() })
  .transform(({ state, merged_at: merged, closed_at: closed }) => ({
    mergedOn: merged ?? null,
    closedOn: state === 'closed' ? (closed ?? null) : null,
  }));
const dates = { created_at: time, updated_at: time, title: text };

const issue = z
  .object({ ...dates, number: z.int(), html_url: z.string(), body: text, closed_at: moment.nullish() })
  .extend({ pull_request: z.object({ merged_at: moment.nullish() }).nullish() })
  .transform(({ pull_request, ...item }): PullRequest => {
    const mergedOn = pull_request?.merged_at ?? null;
    return {
      isPullRequest: pull_request != null,
      link: item.html_url,
      number: item.number,
      text: `${item.title}\n${item.body}`,
      createdAt: item.created_at,
      updatedAt: item.updated_at,
      mergedOn,
      closedOn: mergedOn === null ? (item.closed_at ?? null) : null,
    };
  });

const mergeRequest = z
  .object({ ...dates, iid: z.int(), web_url: z.string(), description: text })
  .and(review)
  .transform((item): PullRequest => ({
    isPullRequest: true,
    link: item.web_url,
    number: item.iid,
    text: `${item.title}\n${item.description}`,
    createdAt: item.created_at,
    updatedAt: item.updated_at,
    mergedOn: item.mergedOn,
    closedOn: item.closedOn,
  }));

/** Bitbucket says only when a pull request last changed, so a list has that day for merged and closed ones. */
const bitbucketState = z
  .object({ state: z.string(), updated_on: time })
  .transform(({ state, updated_on }) => ({
    mergedOn: state === 'MERGED' ? dayOf(updated_on) : null,
    closedOn: state === 'DECLINED' || state === 'SUPERSEDED' ? dayOf(updated_on) : null,
  }));
const bitbucketItem = z
  .object({ id: z.int(), title: text, description: text, created_on: time, updated_on: time })
  .extend({ links: z.object({ html: z.object({ href: z.string() }) }) })
  .and(z.object({ state: z.string() }));
const bitbucketListed = z.looseObject({ values: z.array(z.unknown()) }).transform(({ values }) =>
  values.map((value): PullRequest => {
    const item = bitbucketItem.parse(value);
    return {
      isPullRequest: true,
      link: item.links.html.href,
      number: item.id,
      text: `${item.title}\n${item.description}`,
      createdAt: item.created_on,
      updatedAt: item.updated_on,
      ...bitbucketState.parse(value),
    };
  }),
);
const side = z.object({ path: z.string() }).nullish();

export const DIALECTS: Readonly<Record<'github' | 'gitlab' | 'bitbucket', Dialect>> = {
  github: {
    link: /^\/([\w.-]+\/[\w.-]+)\/pull\/(\d+)/,
    one: (repository, number) => `/repos/${repository}/pulls/${number}`,
    review,
    // Only the list of issues, which contains the pull requests, can begin at a moment.
    list: (repository, since) =>
      `/repos/${repository}/issues?state=all&sort=updated&direction=asc&per_page=100&since=${since}`,
    listed: z.array(issue),
    pageLength: 100,
    files: (page) => `/files?per_page=100&page=${page}`,
    names: z
      .array(z.object({ filename: z.string(), previous_filename: z.string().optional() }))
      .transform((files) => files.flatMap((file) => [file.filename, file.previous_filename ?? []].flat())),
  },
  gitlab: {
    link: /^\/([\w.-]+(?:\/[\w.-]+)+)\/-\/merge_requests\/(\d+)/,
    one: (repository, number) => `/projects/${encodeURIComponent(repository)}/merge_requests/${number}`,
    review,
    list: (repository, since) =>
      `/projects/${encodeURIComponent(repository)}/merge_requests?state=all&scope=all&order_by=updated_at&sort=asc&per_page=100&updated_after=${since}`,
    listed: z.array(mergeRequest),
    pageLength: 100,
    files: (page) => `/diffs?per_page=100&page=${page}`,
    names: z
      .array(z.object({ old_path: z.string(), new_path: z.string() }))
      .transform((files) => files.flatMap((file) => [file.new_path, file.old_path])),
  },
  bitbucket: {
    link: /^\/([\w.-]+\/[\w.-]+)\/pull-requests\/(\d+)/,
    one: (repository, number) => `/repositories/${repository}/pullrequests/${number}`,
    review: bitbucketState,
    history: {
      path: '/activity?pagelen=50',
      days: z
        .object({
          values: z.array(z.object({ update: z.object({ state: z.string(), date: moment }).optional() })),
        })
        .transform(({ values }) => {
          const ends = values.flatMap(({ update }) => update ?? []).filter(({ state }) => state !== 'OPEN');
          return ends.map(({ date }) => date).sort()[0] ?? null;
        }),
    },
    list: (repository, since) =>
      `/repositories/${repository}/pullrequests?state=OPEN&state=MERGED&state=DECLINED&state=SUPERSEDED&sort=updated_on&pagelen=50&q=${encodeURIComponent(`updated_on >= ${since}`)}`,
    listed: bitbucketListed,
    pageLength: 50,
    files: (page) => `/diffstat?pagelen=100&page=${page}`,
    names: z
      .object({ values: z.array(z.object({ old: side, new: side })) })
      .transform(({ values }) =>
        values.flatMap((file) => [file.new?.path ?? [], file.old?.path ?? []].flat()),
      ),
  },
};
