-- Which of a worker's refusals are no lack of a handler: it cannot read these templates, that a newer release has stored.
alter table tasker.workers add column unreadable int[] not null default '{}';
