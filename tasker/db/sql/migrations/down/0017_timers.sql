alter type tasker.placed_step drop attribute begins_at;
alter table tasker.tasks drop column run_at, drop column gates;
alter table tasker.templates drop column gates;
alter table tasker.template_steps drop column not_before, drop column delay_ms, drop column gates;
alter table tasker.turns drop column holder;
create index workflow_steps_due on tasker.workflow_steps (due_at) where due_at is not null;
drop table tasker.timers;
