drop index tasker.tasks_dlq_by_fingerprint, tasker.tasks_dlq_pending, tasker.tasks_dlq_by_namespace;
alter table tasker.tasks_dlq drop column template cascade, drop column namespace cascade;
