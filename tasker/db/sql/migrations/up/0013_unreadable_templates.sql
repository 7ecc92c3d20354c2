-- The refusals of a worker that are not for lack of a handler: it cannot read these templates, stored by a newer
-- release.
alter table tasker.workers add column unreadable int[] not null default '{}';
