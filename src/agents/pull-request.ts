import { z } from 'zod';
import { type Day, dayOf } from '../day.js';

/** A pull request as its host describes it. */
interface PullRequest {
  readonly state: 'open' | 'merged' | 'closed';
  /** When it was merged or closed; of an open one, when it last changed. */
  readonly changedOn: Day;
  /** The branch it is merged into. */
  readonly into: string;
  /** The repository's default branch; undefined if the host does not name it here. */
  readonly defaultBranch: string | undefined;
}

/** What differs between the code hosts. Each GET for a pull request gets one of these answers. */
interface Host {
  /** The address of the API of a host. */
  readonly apiUrl: (url: string) => string;
  /** Matches the path of a link to a pull request: the repository, and the number. */
  readonly link: RegExp;
  /** The path of a pull request in the API. */
  readonly path: (repository: string, number: string) => string;
  readonly answer: z.ZodType<PullRequest>;
  /** The path of the repository in the API, where only that names the default branch. */
  readonly repositoryPath?: (repository: string) => string;
}

const day = z.iso.datetime({ offset: true }).transform((text) => dayOf(new Date(text)));
const branch = z.object({ name: z.string() });

// In GitLab's redirect after a rename, a dot that is not encoded ends the name of the project.
const gitlabProject = (repository: string): string =>
  `/projects/${encodeURIComponent(repository).replaceAll('.', '%2E')}`;

function githubApi(url: string): string {
  const { hostname } = new URL(url);
  // Also GitHub Enterprise Cloud in a region of one's own.
  const hasApiHost = hostname === 'github.com' || hostname.endsWith('.ghe.com');
  return hasApiHost ? url.replace('://', '://api.') : `${url}/api/v3`;
}

const HOSTS: Readonly<Record<'github' | 'gitlab' | 'bitbucket', Host>> = {
  github: {
    apiUrl: githubApi,
    link: /^\/([\w.-]+\/[\w.-]+)\/pull\/(\d+)/,
    path: (repository, number) => `/repos/${repository}/pulls/${number}`,
    answer: z
      .object({ state: z.string(), merged_at: day.nullish(), closed_at: day.nullish(), updated_at: day })
      .extend({ base: z.object({ ref: z.string(), repo: z.object({ default_branch: z.string() }) }) })
      .transform(({ state, merged_at, closed_at, updated_at, base }) => ({
        state: merged_at != null ? 'merged' : state === 'closed' ? 'closed' : 'open',
        changedOn: merged_at ?? closed_at ?? updated_at,
        into: base.ref,
        defaultBranch: base.repo.default_branch,
      })),
  },
  gitlab: {
    apiUrl: (url) => `${url}/api/v4`,
    link: /^\/([\w.-]+(?:\/[\w.-]+)+)\/-\/merge_requests\/(\d+)/,
    path: (repository, number) => `${gitlabProject(repository)}/merge_requests/${number}`,
    answer: z
      .object({ state: z.string(), merged_at: day.nullish(), closed_at: day.nullish(), updated_at: day })
      .extend({ target_branch: z.string() })
      .transform(({ state, merged_at, closed_at, updated_at, target_branch }) => ({
        state: state === 'merged' || state === 'closed' ? state : 'open',
        changedOn: merged_at ?? closed_at ?? updated_at,
        into: target_branch,
        defaultBranch: undefined,
      })),
    repositoryPath: gitlabProject,
  },
  bitbucket: {
    apiUrl: (url) => `${url.replace('://bitbucket.org', '://api.bitbucket.org')}/2.0`,
    link: /^\/([\w.-]+\/[\w.-]+)\/pull-requests\/(\d+)/,
    // Without being asked for it, the answer does not name the default branch.
    path: (repository, number) =>
      `/repositories/${repository}/pullrequests/${number}?fields=%2Bdestination.repository.mainbranch.name`,
    answer: z
      .object({ state: z.string(), closed_on: day.nullish(), updated_on: day })
      .extend({
        destination: z.object({ branch, repository: z.object({ mainbranch: branch.nullish() }).nullish() }),
      })
      .transform(({ state, closed_on, updated_on, destination }) => ({
        state: state === 'MERGED' ? 'merged' : /^(DECLINED|SUPERSEDED)$/.test(state) ? 'closed' : 'open',
        changedOn: closed_on ?? updated_on,
        into: destination.branch.name,
        defaultBranch: destination.repository?.mainbranch?.name,
      })),
  },
};

/**
 * Where the API of the host at `url` describes the pull request of a link, and its repository, and how; undefined if the
 * link does not lead to a pull request there. `apiUrl` is the address of that API, if it does not follow from `url`.
 */
export function findPullRequest(
  link: string,
  { url, apiUrl }: { readonly url: string; readonly apiUrl?: string | undefined },
) {
  if (!link.startsWith(`${url}/`)) return undefined;
  for (const host of Object.values(HOSTS)) {
    const [, repository, number] = host.link.exec(link.slice(url.length)) ?? [];
    // `..` would escape the repositories path.
    if (repository !== undefined && number !== undefined && !/(^|\/)\.+(\/|$)/.test(repository)) {
      const api = apiUrl ?? host.apiUrl(url);
      return {
        address: api + host.path(repository, number),
        answer: host.answer,
        repositoryAddress: host.repositoryPath && api + host.repositoryPath(repository),
      };
    }
  }
  return undefined;
}

/** What GitLab answers about a repository. */
export const repositoryAnswer = z.object({ default_branch: z.string().nullish() });
