-- Ready steps that nobody serves wait beside the others, out of the way of those that somebody does: `unserved` is
-- "template:ordinal" then. One index has the steps that wait for room, by rank, and of each of the others the first.
alter table tasker.ready_backlog add column unserved text;   -- waits for who may have its handler, not for room
drop index tasker.ready_backlog_next;
create index ready_backlog_next on tasker.ready_backlog (namespace_id, unserved, rank) where not paused;
