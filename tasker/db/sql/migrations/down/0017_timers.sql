alter table tasker.turns drop column holder;
create index workflow_steps_due on tasker.workflow_steps (due_at) where due_at is not null;
drop table tasker.timers;
