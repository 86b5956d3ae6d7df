import { z } from 'zod';
import { type Day, dayOf } from '../day.js';

/** When a pull request was merged, or else closed without being merged. */
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
  /** The API path of the pull requests of a repository. */
  readonly all: (repository: string) => string;
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
const dayOfTime = time.transform(dayOf);
const text = z
  .string()
  .nullish()
  .transform((given) => given ?? '');

/** Fields that GitHub and GitLab have in common. */
const ended = { state: z.string(), merged_at: dayOfTime.nullish(), closed_at: dayOfTime.nullish() };
const reviewOf = ({ state, merged_at: merged, closed_at: closed }: z.infer<z.ZodObject<typeof ended>>) => ({
  mergedOn: merged ?? null,
  closedOn: merged == null && state === 'closed' ? (closed ?? null) : null,
});
const review = z.object(ended).transform(reviewOf);
const item = z.object({ ...ended, title: text, created_at: time, updated_at: time });
const itemOf = ({ title, created_at, updated_at, ...end }: z.infer<typeof item>, description: string) => ({
  isPullRequest: true,
  text: `${title}\n${description}`,
  createdAt: created_at,
  updatedAt: updated_at,
  ...reviewOf(end),
});

const issue = item
  .extend({ number: z.int(), html_url: z.string(), body: text })
  .extend({ pull_request: z.object({ merged_at: dayOfTime.nullish() }).nullish() })
  .transform(({ number, html_url, body, pull_request, ...rest }): PullRequest => ({
    ...itemOf({ ...rest, merged_at: pull_request?.merged_at }, body),
    isPullRequest: pull_request != null,
    link: html_url,
    number,
  }));

const mergeRequest = item
  .extend({ iid: z.int(), web_url: z.string(), description: text })
  .transform(({ iid, web_url, description, ...rest }): PullRequest => ({
    ...itemOf(rest, description),
    link: web_url,
    number: iid,
  }));

/** Bitbucket says only when a pull request last changed, so a list has that day for merged and closed ones. */
const bitbucketEnd = z.object({ state: z.string(), updated_on: time });
const bitbucketReview = ({ state, updated_on }: z.infer<typeof bitbucketEnd>): Review => ({
  mergedOn: state === 'MERGED' ? dayOf(updated_on) : null,
  closedOn: state === 'DECLINED' || state === 'SUPERSEDED' ? dayOf(updated_on) : null,
});
const bitbucketItem = bitbucketEnd
  .extend({ id: z.int(), title: text, description: text, created_on: time })
  .extend({ links: z.object({ html: z.object({ href: z.string() }) }) })
  .transform(({ id, title, description, created_on, links, ...end }): PullRequest => ({
    isPullRequest: true,
    link: links.html.href,
    number: id,
    text: `${title}\n${description}`,
    createdAt: created_on,
    updatedAt: end.updated_on,
    ...bitbucketReview(end),
  }));
const side = z.object({ path: z.string() }).nullish();

const projectPath = (repository: string): string =>
  `/projects/${encodeURIComponent(repository)}/merge_requests`;

export const DIALECTS: Readonly<Record<'github' | 'gitlab' | 'bitbucket', Dialect>> = {
  github: {
    link: /^\/([\w.-]+\/[\w.-]+)\/pull\/(\d+)/,
    all: (repository) => `/repos/${repository}/pulls`,
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
    all: projectPath,
    review,
    list: (repository, since) =>
      `${projectPath(repository)}?state=all&scope=all&order_by=updated_at&sort=asc&per_page=100&updated_after=${since}`,
    listed: z.array(mergeRequest),
    pageLength: 100,
    files: (page) => `/diffs?per_page=100&page=${page}`,
    names: z
      .array(z.object({ old_path: z.string(), new_path: z.string() }))
      .transform((files) => files.flatMap((file) => [file.new_path, file.old_path])),
  },
  bitbucket: {
    link: /^\/([\w.-]+\/[\w.-]+)\/pull-requests\/(\d+)/,
    all: (repository) => `/repositories/${repository}/pullrequests`,
    review: bitbucketEnd.transform(bitbucketReview),
    history: {
      path: '/activity?pagelen=50',
      days: z
        .object({
          values: z.array(z.object({ update: z.object({ state: z.string(), date: dayOfTime }).optional() })),
        })
        .transform(({ values }) => {
          const ends = values.flatMap(({ update }) => update ?? []).filter(({ state }) => state !== 'OPEN');
          return ends.map(({ date }) => date).sort()[0] ?? null;
        }),
    },
    list: (repository, since) =>
      `/repositories/${repository}/pullrequests?state=OPEN&state=MERGED&state=DECLINED&state=SUPERSEDED&sort=updated_on&pagelen=50&q=${encodeURIComponent(`updated_on >= ${since}`)}`,
    listed: z.object({ values: z.array(bitbucketItem) }).transform(({ values }) => values),
    pageLength: 50,
    files: (page) => `/diffstat?pagelen=100&page=${page}`,
    names: z
      .object({ values: z.array(z.object({ old: side, new: side })) })
      .transform(({ values }) =>
        values.flatMap((file) => [file.new?.path ?? [], file.old?.path ?? []].flat()),
      ),
  },
};
