-- What each table and column means, for DESCRIBE and docs/data.md.
COMMENT ON TABLE page_views IS 'Views of each address on each day, as the platform reports them. One row per project, day and path; a page may have several paths.';
COMMENT ON COLUMN page_views.project IS 'Project id on the platform';
COMMENT ON COLUMN page_views.day IS 'Day (UTC) on which the views happened';
COMMENT ON COLUMN page_views.path IS 'Address of the page, exactly as the platform sent it: untrusted text';
COMMENT ON COLUMN page_views.page IS 'Page of the address, as page_of(path) has it: /guides/install of /guides/install/ and /guides/install.md. It is the path of a page everywhere else';
COMMENT ON COLUMN page_views.human IS 'Views the platform attributes to people';
COMMENT ON COLUMN page_views.ai IS 'Views the platform attributes to AI agents and tools';
COMMENT ON COLUMN page_views.total IS 'Total views as reported by the platform; normally human + ai';

COMMENT ON TABLE day_loads IS 'The stored days: whether they may still change, and their totals. One row per project and day.';
COMMENT ON COLUMN day_loads.project IS 'Project id on the platform';
COMMENT ON COLUMN day_loads.day IS 'Day (UTC)';
COMMENT ON COLUMN day_loads.failures IS 'In how many nights in a row it did not add up; 0 if it does';
COMMENT ON COLUMN day_loads.state IS 'provisional: loaded before it settled; final: loaded after it settled; inconsistent: its rows did not add up to its totals, so it is read again';
COMMENT ON COLUMN day_loads.attempted_at IS 'When the day was last read (UTC)';
COMMENT ON COLUMN day_loads.loaded_at IS 'When the stored rows were loaded (UTC)';
COMMENT ON COLUMN day_loads.human IS 'Human views of the whole site, as reported with the stored rows';
COMMENT ON COLUMN day_loads.ai IS 'AI views of the whole site, as reported with the stored rows';
COMMENT ON COLUMN day_loads.total IS 'Total views of the whole site, as reported with the stored rows';
COMMENT ON COLUMN day_loads.pages IS 'Number of pages viewed, which is the number of rows stored for the day';
COMMENT ON COLUMN day_loads.unattributed_human IS 'Human views in the site total that no stored page accounts for; 0 if the day adds up';
COMMENT ON COLUMN day_loads.unattributed_ai IS 'AI views in the site total that no stored page accounts for; 0 if the day adds up';
COMMENT ON COLUMN day_loads.unattributed_total IS 'Views in the site total that no stored page accounts for; 0 if the day adds up';
COMMENT ON COLUMN day_loads.failure IS 'Why it does not add up, or why the platform no longer has it; NULL if neither';

COMMENT ON TABLE day_failures IS 'Days whose last attempt to load them failed. What was stored of them earlier is kept. One row per project and day.';
COMMENT ON COLUMN day_failures.project IS 'Project id on the platform';
COMMENT ON COLUMN day_failures.day IS 'Day (UTC)';
COMMENT ON COLUMN day_failures.attempted_at IS 'When it was last requested (UTC)';
COMMENT ON COLUMN day_failures.failure IS 'Why the last attempt failed';
COMMENT ON COLUMN day_failures.failures IS 'How many attempts in a row failed';

COMMENT ON TABLE restatements IS 'Changes found when a stored day was loaded again. One row per change.';
COMMENT ON COLUMN restatements.project IS 'Project id on the platform';
COMMENT ON COLUMN restatements.day IS 'Day (UTC) whose numbers changed';
COMMENT ON COLUMN restatements.restated_at IS 'When the change was stored (UTC)';
COMMENT ON COLUMN restatements.human_before IS 'Human views of the whole site before the change';
COMMENT ON COLUMN restatements.human_after IS 'Human views of the whole site after the change';
COMMENT ON COLUMN restatements.ai_before IS 'AI views of the whole site before the change';
COMMENT ON COLUMN restatements.ai_after IS 'AI views of the whole site after the change';
COMMENT ON COLUMN restatements.total_before IS 'Total views of the whole site before the change';
COMMENT ON COLUMN restatements.total_after IS 'Total views of the whole site after the change';
COMMENT ON COLUMN restatements.pages_changed IS 'Number of pages whose counts differ, including new and vanished pages';

COMMENT ON TABLE runs IS 'What each step did. One row per execution of a step.';
COMMENT ON COLUMN runs.run IS 'Id shared by the steps of one command';
COMMENT ON COLUMN runs.step IS 'export, improve, poll, report, publish or audit';
COMMENT ON COLUMN runs.started_at IS 'When the step began (UTC)';
COMMENT ON COLUMN runs.ended_at IS 'When the step ended (UTC); NULL while it runs, or if it was killed';
COMMENT ON COLUMN runs.outcome IS 'running, done, failed, later (paused, to be resumed later) or interrupted';
COMMENT ON COLUMN runs.summary IS 'What was done, or the error, in one sentence';
COMMENT ON COLUMN runs.resume_at IS 'Earliest time to resume (UTC), set by the request limit, the server, or an email that waits; NULL if none did';

COMMENT ON TABLE agent_jobs IS 'Agent jobs, from plan to pull request. One row per job ever planned for a page.';
COMMENT ON COLUMN agent_jobs.project IS 'Project id on the platform';
COMMENT ON COLUMN agent_jobs.planned_at IS 'When the job was planned (UTC)';
COMMENT ON COLUMN agent_jobs.repository IS 'Source repository';
COMMENT ON COLUMN agent_jobs.ref IS 'Source reference, such as a branch';
COMMENT ON COLUMN agent_jobs.id IS 'Job number in Readership, as used by readership jobs show';
COMMENT ON COLUMN agent_jobs.path IS 'Page to improve';
COMMENT ON COLUMN agent_jobs.state IS 'planned, sending, active, completed, failed, archived, unknown (the reply was lost, so the job may exist on the platform) or refused (the platform rejected it)';
COMMENT ON COLUMN agent_jobs.reason IS 'Why the page was selected';
COMMENT ON COLUMN agent_jobs.prompt IS 'Exact prompt sent to the agent';
COMMENT ON COLUMN agent_jobs.submitted_at IS 'When the intent to submit it was committed (UTC), before it was sent';
COMMENT ON COLUMN agent_jobs.remote_id IS 'Job id on the platform';
COMMENT ON COLUMN agent_jobs.remote_status IS 'Latest status reported by the platform';
COMMENT ON COLUMN agent_jobs.pr_link IS 'Pull request opened by the agent; NULL if there is none';
COMMENT ON COLUMN agent_jobs.model IS 'AI model that works on the job, as reported by the platform';
COMMENT ON COLUMN agent_jobs.polls IS 'Number of times its status was requested since it last became active';
COMMENT ON COLUMN agent_jobs.next_poll_at IS 'When to request its status again (UTC)';
COMMENT ON COLUMN agent_jobs.ended_at IS 'When it was first seen as completed, failed or archived, or was refused (UTC)';
COMMENT ON COLUMN agent_jobs.note IS 'Error from the platform or the network, if something went wrong';
COMMENT ON COLUMN agent_jobs.weekly_human IS 'Human views in a typical week when the page was selected: the median, by all views, of the last eight full weeks';
COMMENT ON COLUMN agent_jobs.weekly_ai IS 'AI views in that week';
COMMENT ON COLUMN agent_jobs.trend IS 'Relative change in median weekly views from the older half of those weeks to the newer half: 0.1 is 10% more; NULL if that of the older half is 0, or the notes have a break in between';
COMMENT ON COLUMN agent_jobs.weeks IS 'The weeks used to select the page, oldest first, with its views';
COMMENT ON COLUMN agent_jobs.merged_on IS 'Day (UTC) its pull request was merged, as recorded with readership jobs settle or found at the code host; NULL if unknown';

COMMENT ON TABLE job_transitions IS 'State changes of each job and its messages. One row per change.';
COMMENT ON COLUMN job_transitions.job IS 'Job number in Readership';
COMMENT ON COLUMN job_transitions.changed_at IS 'When the state changed (UTC)';
COMMENT ON COLUMN job_transitions.from_state IS 'Previous state; NULL for the first change';
COMMENT ON COLUMN job_transitions.to_state IS 'New state';
COMMENT ON COLUMN job_transitions.cause IS 'Why the state changed';
COMMENT ON COLUMN job_transitions.message IS 'Number of the follow-up message whose state changed; NULL if it was the job';
COMMENT ON COLUMN job_transitions.number IS 'Position in the history of the job, counted from 1';

COMMENT ON TABLE agent_messages IS 'Follow-up messages to agent jobs. One row per message ever planned.';
COMMENT ON COLUMN agent_messages.prompt IS 'Exact text sent to the agent';
COMMENT ON COLUMN agent_messages.id IS 'Message number in Readership';
COMMENT ON COLUMN agent_messages.job IS 'Job number in Readership';
COMMENT ON COLUMN agent_messages.state IS 'planned, sending, sent, unknown (the reply was lost, so the agent may have received it) or refused (the platform rejected it)';
COMMENT ON COLUMN agent_messages.origin IS 'typed: a person wrote it';
COMMENT ON COLUMN agent_messages.planned_at IS 'When the message was planned (UTC)';
COMMENT ON COLUMN agent_messages.submitted_at IS 'When the intent to submit it was committed (UTC), before it was sent';
COMMENT ON COLUMN agent_messages.note IS 'Error from the platform or the network, if something went wrong';

COMMENT ON TABLE agent_pauses IS 'Times when the platform refused prompts for a while (429, or 503 with Retry-After). One row per refusal.';
COMMENT ON COLUMN agent_pauses.project IS 'Project id on the platform';
COMMENT ON COLUMN agent_pauses.paused_at IS 'When the platform refused (UTC)';
COMMENT ON COLUMN agent_pauses.paused_until IS 'No prompts are sent before this time (UTC)';
COMMENT ON COLUMN agent_pauses.cause IS 'Error message of the refusal';

COMMENT ON TABLE page_choices IS 'Latest decisions of the improve step: pages flagged for a job, next in line, and left out. One row per project and page considered.';
COMMENT ON COLUMN page_choices.project IS 'Project id on the platform';
COMMENT ON COLUMN page_choices.path IS 'Path of the page';
COMMENT ON COLUMN page_choices.chosen_at IS 'When this decision was first made (UTC); an unchanged decision is not stored again';
COMMENT ON COLUMN page_choices.is_flagged IS 'Whether the page is flagged for a job';
COMMENT ON COLUMN page_choices.code IS 'flagged; next (in line, when there is room); or why the page was left out, such as excluded or had-job';
COMMENT ON COLUMN page_choices.facts IS 'Details of the reason as JSON, such as the number of days or of the job';
COMMENT ON COLUMN page_choices.weekly_human IS 'Human views in a typical week: the median, by all views, of the last eight full weeks';
COMMENT ON COLUMN page_choices.weekly_ai IS 'AI views in that week';

COMMENT ON TABLE deliveries IS 'Reports and alerts that were sent: recipients, periods and outcomes. One row per report, project, period and recipient.';
COMMENT ON COLUMN deliveries.report IS 'Name of the report, such as weekly, or alert';
COMMENT ON COLUMN deliveries.project IS 'Project id on the platform; - for all projects';
COMMENT ON COLUMN deliveries.period IS 'Period the report covers, such as 2026-W46';
COMMENT ON COLUMN deliveries.recipient IS 'Email address, or name of a channel';
COMMENT ON COLUMN deliveries.state IS 'sending (recorded before anything is sent), sent, waiting (not delivered yet; it is tried again), failed (rejected permanently, or given up) or unknown (it may have arrived, so it is never sent again automatically)';
COMMENT ON COLUMN deliveries.via IS 'smtp (handed to the mail server), outbox (written to a file), or the kind of the channel: slack, teams or webhook';
COMMENT ON COLUMN deliveries.message_id IS 'Message-ID of the email, or id of the webhook, for finding it in logs';
COMMENT ON COLUMN deliveries.attempts IS 'Number of delivery attempts';
COMMENT ON COLUMN deliveries.tried_at IS 'When the last attempt started (UTC)';
COMMENT ON COLUMN deliveries.settled_at IS 'When it became sent, failed or unknown (UTC); NULL until then';
COMMENT ON COLUMN deliveries.next_attempt_at IS 'When it will be tried again (UTC); NULL if it will not';
COMMENT ON COLUMN deliveries.note IS 'What the mail server or the channel said, or where the file is';
COMMENT ON COLUMN deliveries.days_covered IS 'Loaded days of the period when it was sent; NULL for alerts';
COMMENT ON COLUMN deliveries.human IS 'Human views of the pages that it is about in the period when it was sent, over all of its projects';
COMMENT ON COLUMN deliveries.ai IS 'AI views of the pages that it is about in the period when it was sent, over all of its projects';

COMMENT ON TABLE page_skips IS 'Pages that a person chose to skip; improve does not flag them. One row per project and page.';
COMMENT ON COLUMN page_skips.project IS 'Project id on the platform';
COMMENT ON COLUMN page_skips.path IS 'Path of the page';
COMMENT ON COLUMN page_skips.skipped_at IS 'When it was skipped (UTC)';
COMMENT ON COLUMN page_skips.skipped_until IS 'Day (UTC) from which it may be flagged again; NULL if only readership improve --unskip ends it';

COMMENT ON TABLE pull_requests IS 'What the code host, or a person, said of the pull requests of agents that are not merged. One row per job whose pull request was looked up or closed; the view jobs has its state.';
COMMENT ON COLUMN pull_requests.job IS 'Job number in Readership';
COMMENT ON COLUMN pull_requests.checked_at IS 'When it was last looked up (UTC)';
COMMENT ON COLUMN pull_requests.next_check_at IS 'When to look it up again (UTC)';
COMMENT ON COLUMN pull_requests.closed_on IS 'Day (UTC) it was closed without being merged; NULL if it is open or merged';
COMMENT ON COLUMN pull_requests.problem IS 'Why it could not be looked up; NULL if it could';
COMMENT ON COLUMN pull_requests.merged_into IS 'Branch it was merged into, if that is neither the branch the agent began with nor the default branch; NULL otherwise';

COMMENT ON TABLE notes IS 'What happened outside, from notes.yaml, as of the last publication. One row per note and project that it concerns.';
COMMENT ON COLUMN notes.project IS 'Project id on the platform';
COMMENT ON COLUMN notes.day IS 'Day (UTC) on which it happened';
COMMENT ON COLUMN notes.text IS 'What happened';
COMMENT ON COLUMN notes.path IS 'Pages that it concerns: a page, or a pattern for GLOB (page_views.page GLOB notes.path); * for the whole site';
COMMENT ON COLUMN notes.is_break IS 'Whether views are counted differently from this day on, so that they cannot be compared with earlier ones';

COMMENT ON TABLE platform_facts IS 'What was learned about the platform: the first day with views, its largest page and the order of its rows, the first day it keeps, how far the search for the first day has got. One row per project and fact.';
COMMENT ON COLUMN platform_facts.project IS 'Project id on the platform';
COMMENT ON COLUMN platform_facts.fact IS 'first day, paging, kept from, search or not additive';
COMMENT ON COLUMN platform_facts.value IS 'Value of the fact, as JSON';
COMMENT ON COLUMN platform_facts.found_at IS 'When it was found (UTC). Limits need two witnesses, and are believed for 30 days';

COMMENT ON TABLE kept_movers IS 'The answers of movers(week_start) for the last full weeks, which take long to compute on a large site. One row per project and week.';
COMMENT ON COLUMN kept_movers.project IS 'Project id on the platform';
COMMENT ON COLUMN kept_movers.week IS 'First of the seven days';
COMMENT ON COLUMN kept_movers.inputs IS 'Digest of all that the answer depends on; movers computes it again if that has changed';
COMMENT ON COLUMN kept_movers.movers IS 'The rows of the answer';
