alter table tasker.template_steps drop column max_in_process_minutes cascade;
alter table tasker.templates drop column lifecycle cascade;
drop table tasker.staleness_settings cascade;
drop table tasker.tasks_dlq cascade;
drop type tasker.dlq_resolution_status cascade;
drop type tasker.dlq_reason cascade;
