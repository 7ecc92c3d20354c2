drop index tasker.ready_backlog_next;
alter table tasker.ready_backlog drop column unserved;
create index ready_backlog_next on tasker.ready_backlog (namespace_id, rank) where not paused;
