/** Every command, in an order in which each finds what it needs; `[]` is the command without arguments. */
export const COMMANDS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  run: [[]],
  export: [[], ['--plan']],
  audit: [[], ['--repair']],
  improve: [[], ['--apply']],
  'jobs list': [[], ['--json']],
  'jobs show': [['1']],
  'jobs message': [['1', 'Mention the limits.']],
  'jobs poll': [[]],
  'jobs closed': [['1']],
  'jobs merged': [['1']],
  'jobs resolve': [['1', '--not-created']],
  report: [['weekly'], ['weekly', '--format', 'eml'], ['weekly', '--send', '--force']],
  'report new': [['sections']],
  publish: [[], ['--parquet', 'lake']],
  restore: [[]],
  status: [['--json']],
  doctor: [[], ['--json']],
  mcp: [[]],
  sql: [['FROM runs'], ['FROM page_views', '--format', 'parquet', '--output', 'views.parquet']],
  serve: [['--port', '0']],
  start: [[]],
  completion: [['bash']],
  init: [[]],
  sandbox: [['--port', '0']],
};
/** Commands that need a new workspace: something is due at once, or no file may exist. */
export const APART = new Set(['start', 'init', 'sandbox']);
