alter table tasker.task_details drop column trace;
