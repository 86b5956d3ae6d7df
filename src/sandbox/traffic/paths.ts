/** A prominent page and the views it gets in a week, by people and by AI, before seasons and noise. */
export type Prominent = readonly [path: string, human: number, ai: number];

/** Path, human views and AI views of each. */
export const PROMINENT: readonly Prominent[] = [
  ...`
  /quickstart 2140 1720   / 1690 610   /api-reference/authentication 1390 2210
  /guides/webhooks 1250 1130   /sdks/typescript 1060 890   /api-reference/errors 820 1640
  /concepts/projects 740 640   /guides/rate-limits 590 1180   /sdks/python 680 820
  /changelog 640 260   /api-reference 560 480   /guides/deploy 520 390
  /guides/pagination 310 560   /concepts/environments 330 240   /guides/migrate-v1 290 160
  /cli 280 190   /sdks 260 130   /guides/idempotency 170 360   /integrations 230 90
  /guides/retries 150 310   /security 160 70   /guides/testing 180 150
  /guides/streaming 140 230   /concepts/permissions 150 130   /integrations/github 170 90
  /integrations/slack 160 60   /guides/local-development 150 120   /status-codes 60 190
  /support 130 20   /glossary 50 90   /api-reference/openapi 46 640   /openapi.json 12 420
  /llms.txt 14 720   /llms-full.txt 11 1150`.matchAll(/(\S+) (\d+) (\d+)/g),
].map(([, path = '', human, ai]) => [path, Number(human), Number(ai)]);

const words = (text: string): string[] => text.trim().split(/\s+/);
const cross = (heads: readonly string[], tails: readonly string[]): string[] =>
  heads.flatMap((head) => tails.map((tail) => `${head}/${tail}`));
const under = (section: string, names: string): string[] => cross([section], words(names));

const resources =
  words(`accounts api-keys assets audit-events batches builds comments customers datasets deployments
  domains environments exports files imports invoices jobs keys labels members messages models organizations projects
  queries releases reports schedules secrets sessions subscriptions teams tokens users webhooks workflows`);
const operations = words('list create retrieve update delete');
const languages = words('typescript python go ruby java kotlin php csharp rust');
const sdkTopics = words('installation errors pagination retries webhooks streaming testing timeouts types');

const guides = under(
  '/guides',
  `async-jobs audit-logs backups batch-jobs billing-alerts branching bulk-import caching ci-cd
  compliance-exports cost-control custom-domains data-residency debugging edge-functions embedding environments-sync
  error-handling event-ordering feature-flags file-uploads filtering graphql key-rotation large-files
  logging metrics migrate-v2 monitoring multi-region multi-tenancy notifications oauth observability offline-mode
  performance preview-environments production-checklist queues real-time replays role-design sandboxing scheduled-jobs
  schema-changes search secrets-management server-side-rendering signing-requests single-sign-on sorting static-sites
  terraform usage-reports versioning webhook-signatures zero-downtime`,
);
const concepts = under(
  '/concepts',
  `accounts api-versions authentication billing builds consistency deployments domains events identities
  jobs lifecycles limits metadata objects organizations pagination queues regions releases roles scopes sessions
  snapshots storage teams tokens workflows`,
);
const integrations = under(
  '/integrations',
  `airtable auth0 aws azure bitbucket cloudflare datadog discord docker fly gitlab google-cloud grafana heroku
  hubspot jira kubernetes linear netlify notion okta pagerduty postgres redis segment sentry snowflake stripe
  supabase teams terraform twilio vercel zapier`,
);
const cli = under(
  '/cli',
  `build config deploy dev env init install link login logs pull push rollback run upgrade`,
);
const security = under(
  '/security',
  `access-reviews data-retention encryption gdpr incident-response pen-tests soc2`,
);

/** The long tail of an ordinary site, section by section. */
export function* tailPaths(): Generator<string> {
  yield* cross(['/api-reference'], resources);
  yield* cross(cross(['/api-reference'], resources), operations);
  yield* cross(cross(['/sdks'], languages.slice(2)), sdkTopics);
  yield* under('/sdks', languages.slice(2).join(' '));
  yield* [...guides, ...concepts, ...integrations, ...cli, ...security];
}

/** Endless further names, for a site that is larger or keeps growing. */
export function* laterPaths(): Generator<string, never> {
  yield* cross(cross(['/sdks'], languages.slice(0, 2)), sdkTopics);
  yield* resources.flatMap((resource) => operations.map((verb) => `/recipes/${verb}-${resource}-in-bulk`));
  for (let number = 1; ; number += 1) yield `/archive/note-${String(number).padStart(4, '0')}`;
}
