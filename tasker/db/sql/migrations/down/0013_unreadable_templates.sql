alter table tasker.workers drop column unreadable;
