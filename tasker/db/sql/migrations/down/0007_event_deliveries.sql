drop table tasker.event_deliveries cascade;
alter table tasker.event_subscribers drop column stopped;
