-- Unserved ready steps wait separately from the others, so that served steps are not blocked: `unserved` is
-- "template:ordinal" then. One index finds the steps that wait for room, by rank, and the first of each unserved kind.
alter table tasker.ready_backlog add column unserved text;   -- waits for a worker with the handler, not for room
drop index tasker.ready_backlog_next;
create index ready_backlog_next on tasker.ready_backlog (namespace_id, unserved, rank) where not paused;
