import type { Runtime, Workspace, WorkspaceOptions } from '../app/workspace.js';
import { Questions } from './questions.js';
import { WebHistory } from './history.js';
import { Proposals } from './proposals.js';
import { SavedQuestions } from './saved.js';

/** What pages and tools answer from. */
export interface Sources {
  readonly workspace: Workspace;
  readonly runtime: Pick<Runtime, 'now' | 'signal'>;
  readonly history: WebHistory;
  readonly questions: Pick<Questions, 'answer' | 'file'>;
  readonly saved: SavedQuestions;
  readonly proposals: Proposals;
}

export const openSources = (workspace: Workspace, options: WorkspaceOptions, runtime: Runtime): Sources => ({
  ...{ workspace, runtime },
  history: new WebHistory(workspace.historyFile, workspace.settings.sql.maxMemory),
  questions: new Questions(workspace, options, runtime),
  saved: new SavedQuestions(workspace),
  proposals: new Proposals(workspace),
});
